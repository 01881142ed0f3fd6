"""Secrets on a disk."""

from pathlib import Path

from ottla.base.platform import private_files


def test_a_secret_on_disk_is_readable_by_its_owner_only() -> None:
    """The temporary file has mode 0600 and is removed afterwards."""
    with private_files.file_of_owner(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert Path(path).stat().st_mode & 0o777 == 0o600
    assert not Path(path).exists()

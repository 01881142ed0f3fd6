"""Descriptors of files and of their ranges."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.base.files import RealFileSystem, keep_others_out, lent_count
from ottla.base.platform import IS_LINUX, page_cache
from ottla.base.platform.private_files import private_copy


def test_a_file_that_is_opened_again_shares_the_descriptor_of_its_ranges(tmp_path: Path) -> None:
    """However often a file is closed and opened, its ranges use one descriptor."""
    files, path = RealFileSystem(), str(tmp_path / "segment")
    Path(path).write_bytes(b"0123456789")
    before = lent_count()
    ranges, descriptors = [], set()
    for position in range(5):
        file = files.open(path)
        ranges.append(file.range_at(position, 2))
        descriptors.add(file.fileno())
        file.close()
        assert lent_count() == before + 1
    (fd,) = descriptors
    assert [records.read() for records in ranges] == [b"01", b"12", b"23", b"34", b"45"]
    file = files.open(path)
    file.append(b"ab")
    assert (file.size(), file.read_at(8, 9)) == (12, b"89ab")
    ranges.clear()
    assert file.read_at(0, 1) == b"0"
    file.close()
    assert lent_count() == before
    with pytest.raises(OSError):
        os.fstat(fd)


def test_a_file_that_replaced_another_has_a_descriptor_of_its_own(tmp_path: Path) -> None:
    """A range has the bytes of the old file, a read of the new file has its own."""
    files, path = RealFileSystem(), str(tmp_path / "segment")
    Path(path).write_bytes(b"old")
    old = files.open(path)
    records = old.range_at(0, 3)
    old.close()
    files.replace(path, b"new")
    file = files.open(path)
    assert (records.read(), file.read_at(0, 3)) == (b"old", b"new")
    file.close()


def test_a_closed_file_without_ranges_leaves_no_descriptor(tmp_path: Path) -> None:
    """Closing twice is harmless, and a missing file is reported as missing."""
    files, path = RealFileSystem(), str(tmp_path / "segment")
    before = lent_count()
    file = files.open(path, create=True)
    fd = file.fileno()
    file.close()
    file.close()
    assert lent_count() == before
    with pytest.raises(OSError):
        os.fstat(fd)
    with pytest.raises(FileNotFoundError):
        files.open(path + ".missing")


@pytest.mark.skipif(not IS_LINUX, reason="syncfs")
def test_a_lock_syncs_the_file_system_that_contains_it(tmp_path: Path) -> None:
    """On a local file system of Linux, one call makes all files durable; a released lock cannot do
    it.
    """
    lock = RealFileSystem().lock(f"{tmp_path}/.lock")
    assert lock.sync_file_system()
    lock.release()
    with pytest.raises(OSError):
        lock.sync_file_system()


@pytest.mark.skipif(not IS_LINUX, reason="syncfs")
def test_an_unreliable_sync_of_a_file_system_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old kernels report no errors of the device; a remote file system may not pass the call on."""
    with open(tmp_path / "file", "wb") as file:
        number = os.fstat(file.fileno()).st_dev
        device = f"{os.major(number)}:{os.minor(number)}"
        local = f"29 1 {device} / /data rw,noatime shared:1 - ext4 /dev/vda rw"
        assert page_cache.write_all(file.fileno(), local)
        assert not page_cache.write_all(file.fileno(), local.replace("ext4", "nfs4"))
        assert not page_cache.write_all(file.fileno(), local.replace(device, "0:99999"))
        for release, expected in (("5.7.19-generic", False), ("5.8-rc1", True), ("odd", False)):
            names = SimpleNamespace(release=release)
            monkeypatch.setattr(os, "uname", lambda names=names: names)
            assert page_cache.write_all(file.fileno(), local) == expected


@pytest.fixture(name="open_umask")
def _open_umask() -> Iterator[None]:
    former = os.umask(0)
    yield
    os.umask(former)


def mode(path: Path) -> int:
    """Return the permissions of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_files_are_created_for_the_user_of_the_process_only(tmp_path: Path) -> None:
    """They have records and keys of passwords, whatever the umask is."""
    files, folder = RealFileSystem(), tmp_path / "a" / "b"
    files.make_directories(str(folder))
    files.make_directories(str(folder))
    files.open(f"{folder}/log", create=True).close()
    files.replace(f"{folder}/checkpoint", b"0")
    files.lock(f"{folder}/.lock").release()
    assert [mode(path) for path in (tmp_path / "a", folder)] == [0o700, 0o700]
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "log": 0o600,
        "checkpoint": 0o600,
        ".lock": 0o600,
    }
    with pytest.raises(FileExistsError):
        files.make_directories(f"{folder}/log")


def test_files_of_an_earlier_version_are_restricted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that cannot be is a warning, so that a broker still starts."""
    files = RealFileSystem()
    old, shared = tmp_path / "old", tmp_path / "shared"
    old.touch(0o644)
    shared.mkdir()
    shared.chmod(0o1777)
    keep_others_out(files, [str(old), str(shared), str(tmp_path / "gone")])
    assert (mode(old), mode(shared)) == (0o600, 0o1777)
    assert caplog.text.count("other users may read this") == 2
    assert "a folder that is shared by all users" in caplog.text


@pytest.mark.skipif(not IS_LINUX, reason="files in memory")
def test_private_copy_of_a_secret_has_no_name(tmp_path: Path) -> None:
    """A library that reads files only gets its path, which ends with the block."""
    with private_copy(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert "(deleted)" in os.readlink(path)
    assert not Path(path).exists()

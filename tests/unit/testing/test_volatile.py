"""Files without durability, which otherwise behave as real ones."""

import os
from pathlib import Path

import pytest

from ottla.base.platform import disk, page_cache
from ottla.testing.volatile import VolatileFileSystem


def test_nothing_waits_for_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call of a test cluster reaches fsync."""

    def refuse(fd: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(disk, "sync_all", refuse)
    monkeypatch.setattr(disk, "sync_data", refuse)
    monkeypatch.setattr(page_cache, "write_all", refuse)
    files = VolatileFileSystem()
    file = files.open(f"{tmp_path}/a", create=True)
    file.append(b"one")
    file.sync()
    file.append(b"two")
    assert file.read_at(0, 10) == b"onetwo"
    file.close()
    files.replace(f"{tmp_path}/b", b"whole")
    files.sync_directory(str(tmp_path))
    assert files.lock(f"{tmp_path}/.lock").sync_file_system()
    files.remove(f"{tmp_path}/.lock")
    assert files.read(f"{tmp_path}/b") == b"whole"
    assert files.list(str(tmp_path)) == ["a", "b"]

"""Descriptors of files and of their ranges."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.base import page_cache
from ottla.base.files import RealFileSystem, lent_count


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


def test_a_lock_syncs_the_file_system_that_contains_it(tmp_path: Path) -> None:
    """On a local file system of Linux, one call makes all files durable; a released lock has none."""
    lock = RealFileSystem().lock(f"{tmp_path}/.lock")
    assert lock.sync_file_system()
    lock.release()
    with pytest.raises(OSError):
        lock.sync_file_system()


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

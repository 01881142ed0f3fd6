"""Durability, reads and locks: the portable form of each call has the same result as Linux's."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.platform import disk

# No descriptor of a test has this number.
CLOSED = 2**20


@pytest.mark.parametrize("read_vector", [disk.read_vector, disk.read_and_wait])
def test_a_read_by_position_is_short_at_the_end_of_the_file(
    read_vector: Callable[..., int], file_fd: int
) -> None:
    """The buffer has the bytes; the number of bytes is returned."""
    buffer = bytearray(4)
    assert read_vector(file_fd, (buffer,), 3, 0) == 4
    assert bytes(buffer) == b"3456"
    assert read_vector(file_fd, (buffer,), 8, 0) == 2
    assert bytes(buffer) == b"8956"
    assert read_vector(file_fd, (buffer,), 10, 0) == 0


@pytest.mark.parametrize("sync", [disk.sync_all, disk.sync_data, disk.sync_device])
def test_data_is_synced(
    sync: Callable[[int], None], file_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that has no F_FULLFSYNC gets fsync; an error of the device is raised."""
    monkeypatch.setattr(disk, "_FULL_SYNC", 1000)
    sync(file_fd)
    with pytest.raises(OSError):
        sync(CLOSED)


def test_macos_syncs_the_cache_of_the_device(file_fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F_FULLFSYNC is the call that makes data durable there; fsync alone does not."""
    calls = []
    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr(disk.fcntl, "fcntl", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    disk.sync_device(file_fd)
    assert calls == [(file_fd, 51)]


@pytest.mark.parametrize(
    ("lock", "is_locked"),
    [
        (disk.lock_whole_file, disk.is_locked),
        (disk.lock_with_flock, disk.is_locked_with_flock),
    ],
)
def test_a_lock_belongs_to_the_open_file(
    lock: Callable[[int], None], is_locked: Callable[[int], bool], tmp_path: Path
) -> None:
    """It excludes another open file of the same process, and a query does not take it."""
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert not is_locked(second)
    lock(first)
    assert is_locked(second)
    with pytest.raises(BlockingIOError):
        lock(second)
    os.close(first)
    assert not is_locked(second)
    lock(second)
    os.close(second)

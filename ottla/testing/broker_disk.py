"""The files of one broker in a test: can be slow, and can lose everything that follows a kill."""

import errno
import os
import time
from collections.abc import Sequence

from ottla.base.buffers import Buffer
from ottla.base.files import (
    Descriptor,
    RealFile,
    RealFileSystem,
    RealLock,
    open_descriptor,
)
from ottla.testing.volatile import VolatileFileSystem, VolatileLock


class BrokerFile(RealFile):
    """A file of a broker that may be slow or killed; `sync` does nothing if the data is temporary."""

    __slots__ = ("_disk",)

    def __init__(self, path: str, descriptor: Descriptor, disk: "BrokerDisk") -> None:
        super().__init__(path, descriptor)
        self._disk = disk

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end."""
        if self._disk.may_write():
            super().append(data)
        else:
            self._size += len(data)

    def append_parts(self, parts: Sequence[Buffer]) -> None:
        """Write all `parts` at the end."""
        if self._disk.may_write():
            super().append_parts(parts)
        else:
            self._size += sum(len(part) for part in parts)

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite at `position`."""
        if self._disk.may_write():
            super().write_at(position, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the file."""
        if self._disk.may_write():
            super().truncate(size_bytes)
        else:
            self._size = size_bytes

    def sync(self) -> None:
        """Flush to the device, unless the data is temporary."""
        if self._disk.may_write() and not self._disk.is_temporary:
            super().sync()


class BrokerDisk(VolatileFileSystem):
    """The files of one broker from its start to its end; another start needs another one.

    `delay_seconds` is added to each write and sync. While `is_full`, writes fail. After `kill` the
    broker's writes have no effect and its locks are released, as if its process had ended at that
    moment.
    """

    def __init__(self, *, is_temporary: bool) -> None:
        self.is_temporary = is_temporary
        self._lock_type = VolatileLock if is_temporary else RealLock
        self.delay_seconds = 0.0
        self.is_full = False
        self._is_alive = True
        self._locks: list[RealLock] = []

    def may_write(self) -> bool:
        """Wait as long as the disk is slow; return False if the broker has been killed.

        Raises OSError while the disk is full.
        """
        if self.delay_seconds and self._is_alive:
            time.sleep(self.delay_seconds)
        if self.is_full and self._is_alive:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._is_alive

    def kill(self) -> None:
        """Let nothing more reach the disk."""
        self._is_alive = False
        for lock in self._locks:
            lock.release()

    def open(self, path: str, *, create: bool = False) -> BrokerFile:  # type: ignore[override]
        """Open in append mode, like the real file system."""
        descriptor = open_descriptor(path, create=create and self._is_alive)
        return BrokerFile(path, descriptor, self)

    def lock(self, path: str) -> RealLock:
        """Lock a file; `kill` releases it."""
        lock = super().lock(path)
        self._locks.append(lock)
        return lock

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file atomically."""
        if self.may_write():
            if self.is_temporary:
                super().replace(path, data)
            else:
                RealFileSystem.replace(self, path, data)

    def sync_directory(self, path: str) -> None:
        """Make the names in a folder durable, unless the data is temporary."""
        if self.may_write() and not self.is_temporary:
            RealFileSystem.sync_directory(self, path)

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing a file."""
        if self.may_write():
            super().rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if self.may_write():
            super().remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all of its content."""
        if self.may_write():
            super().remove_tree(path)

    def make_directories(self, path: str) -> None:
        """Create a folder and its parents."""
        if self.may_write():
            super().make_directories(path)

"""Real files that are never flushed to the device, for data that is removed after the test.

A power loss would lose records. A restart of the broker does not, because the page cache outlives
the process. Without device flushes a cluster starts and stops in a third of the time.
"""

import os

from ottla.base.files import RealFile, RealFileSystem, RealLock, open_descriptor, open_private


class VolatileFile(RealFile):
    """A file whose `sync` returns immediately."""

    __slots__ = ()

    def sync(self) -> None:
        """Leave the content in the page cache."""


class VolatileLock(RealLock):
    """A lock whose `sync_file_system` returns immediately."""

    def sync_file_system(self) -> bool:
        """Leave everything in the page cache."""
        return True


class VolatileFileSystem(RealFileSystem):
    """The operating system's files, without durability."""

    _lock_type: type[RealLock] = VolatileLock

    def open(self, path: str, *, create: bool = False) -> VolatileFile:
        """Open in append mode, like the real file system."""
        return VolatileFile(path, open_descriptor(path, create=create))

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file atomically."""
        temporary = path + ".tmp"
        with open(temporary, "wb", opener=open_private) as file:
            file.write(data)
        os.replace(temporary, path)

    def sync_directory(self, path: str) -> None:
        """Leave the names in the page cache."""

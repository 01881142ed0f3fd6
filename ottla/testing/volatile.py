"""Real files that are never flushed to the device, for data that is removed after the test.

A power loss would lose records. A restart of the broker does not, because the page cache outlives
the process. Without device flushes a cluster starts and stops in a third of the time.
"""

import os

from ottla.base.files import RealFile, RealFileSystem


class VolatileFile(RealFile):
    """A file whose `sync` returns immediately."""

    __slots__ = ()

    def sync(self) -> None:
        """Leave the content in the page cache."""


class VolatileFileSystem(RealFileSystem):
    """The operating system's files, without durability."""

    def open(self, path: str, *, create: bool = False) -> VolatileFile:
        """Open in append mode, like the real file system."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return VolatileFile(path, os.open(path, flags, 0o644))

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of the file atomically."""
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)

    def sync_directory(self, path: str) -> None:
        """Leave the names in the page cache."""

"""Real files that are never flushed to the device: for data that ends with the test.

A power loss would cost records; a restart of the broker does not, the page cache outlives it. Without
waiting for a device a cluster starts and stops in a third of the time.
"""

import os

from ottla.base.files import RealFile, RealFileSystem


class VolatileFile(RealFile):
    """A file whose `sync` returns at once."""

    __slots__ = ()

    def sync(self) -> None:
        """Leave the content to the page cache."""


class VolatileFileSystem(RealFileSystem):
    """The operating system's files, without their durability."""

    def open(self, path: str, *, create: bool = False) -> VolatileFile:
        """Open in append mode, as the real one does."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return VolatileFile(path, os.open(path, flags, 0o644))

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in the place of the file: all of it or nothing for every reader."""
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)

    def sync_directory(self, path: str) -> None:
        """Leave the names to the page cache."""

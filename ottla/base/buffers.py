"""The bytes-like types that contain records and frames; apart from `files`, which needs asyncio.

The command line starts in under 150 ms because none of the modules it imports (client, wire)
imports asyncio.
"""

from collections.abc import Awaitable
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class NotSendable(Exception):
    """A file has become shorter, or could not be sent; a read of the bytes finds out why."""


class RangeSource(Protocol):
    """The open file of a `FileRange`; it stays open while it is referenced."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; shorter only at the end of the file."""
        ...

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        """Read off the event loop; the result is the same as of `read_at`."""
        ...

    def note_failure(self) -> None:
        """Note that the file could not be read while it was sent."""
        ...

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """Return whether `read_at` would return without waiting for a device."""
        ...


class FileRange:
    """A range of a file that is sent from the file instead of from memory.

    The file stays open as long as the range exists, even if it is removed. Code that cuts the file
    before the end of the range sets `is_void`: the bytes must not be read or sent any more.
    `is_warm` is true while the page cache was found to contain all of the bytes just now.
    """

    __slots__ = ("__weakref__", "is_void", "is_warm", "position", "size_bytes", "source")

    def __init__(self, source: RangeSource, position: int, size_bytes: int) -> None:
        self.source = source
        self.position = position
        self.size_bytes = size_bytes
        self.is_void = self.is_warm = False

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Return the bytes; waits for the device if necessary."""
        return self.source.read_at(self.position, self.size_bytes)

    def is_cached(self) -> bool:
        """Return True if the page cache contains all of the bytes."""
        self.is_warm = self.source.is_cached(self.position, self.size_bytes)
        return self.is_warm


# The parts of a response.
Part = Buffer | FileRange

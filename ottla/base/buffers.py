"""The bytes-like types that carry records and frames; apart from `files`, which needs asyncio.

The command line starts in under 150 ms because nothing on its way (client, wire) imports asyncio.
"""

from collections.abc import Awaitable
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class RangeSource(Protocol):
    """An open file behind a `FileRange`; it stays open while it is referenced."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; shorter only at the end of the file."""
        ...

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        """Like `read_at`, off the event loop."""
        ...

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """Return whether `read_at` would return without waiting for a device."""
        ...


class FileRange:
    """Bytes of a file that are sent from there instead of from memory.

    The file stays open as long as the range exists, even if it is removed. Whoever cuts the file
    below the end of the range sets `is_void`: its bytes must not be read or sent any more.
    """

    __slots__ = ("__weakref__", "is_void", "position", "size_bytes", "source")

    def __init__(self, source: RangeSource, position: int, size_bytes: int) -> None:
        self.source = source
        self.position = position
        self.size_bytes = size_bytes
        self.is_void = False

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Return the bytes; waits for the device if need be."""
        return self.source.read_at(self.position, self.size_bytes)

    def is_cached(self) -> bool:
        """Return whether the page cache holds all of the bytes."""
        return self.source.is_cached(self.position, self.size_bytes)


# What a response consists of.
Part = Buffer | FileRange

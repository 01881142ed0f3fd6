"""The offset index of a segment: from an offset to the byte where its batch begins.

On disk (`.index`) an entry is 8 bytes: last offset of a batch, relative to the segment, and the
position where that batch begins; one for every `index.interval.bytes` of records. In memory the
batch's first offset stands beside it, if this process appended the batch: then a lookup inside that
batch needs no look at the file. Follows org.apache.kafka.storage.internals.log.OffsetIndex.
"""

import operator
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from ottla.base.buffers import Buffer

ENTRY_SIZE = 8
RELATIVE_OFFSET_MAX = 2**31 - 1


class Place(NamedTuple):
    """Where to look for an offset: at `position`, or (if not `is_exact`) from there on.

    `last_offset` is that of the batch at `position`, -1 where the index does not say.
    """

    position: int
    last_offset: int
    is_exact: bool


class OffsetIndex:
    """Entries in rising order of offset and position; none points to the segment's first batch."""

    __slots__ = ("_first", "_last", "_loaded", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._last = array("I")
        self._positions = array("I")
        # Where an indexed batch begins is not on disk: the first `_loaded` entries have no `_first`.
        self._loaded = 0
        self._first = array("I")

    def __len__(self) -> int:
        return len(self._last)

    def append(self, first_offset: int, last_offset: int, position: int) -> None:
        """Add the batch that begins at `position`."""
        self._first.append(first_offset - self.base_offset)
        self._last.append(last_offset - self.base_offset)
        self._positions.append(position)

    def lookup(self, offset: int) -> Place:
        """Return where to find the first batch whose last offset is at least `offset`."""
        relative = offset - self.base_offset
        at = bisect_left(self._last, relative)
        appended = at - self._loaded
        if 0 <= appended < len(self._first) and self._first[appended] <= relative:
            return Place(self._positions[at], self._last[at] + self.base_offset, True)
        if at == 0:
            # Where most consumers begin, the first batch does.
            return Place(0, -1, relative == 0)
        return Place(self._positions[at - 1], self._last[at - 1] + self.base_offset, False)

    def floor(self, position: int) -> Place:
        """Return the last entry that points at or before `position`."""
        at = bisect_right(self._positions, position) - 1
        if at < 0:
            return Place(0, -1, False)
        return Place(self._positions[at], self._last[at] + self.base_offset, True)

    def truncate(self, position: int) -> None:
        """Forget the batches that begin at or after `position`."""
        at = bisect_left(self._positions, position)
        del self._first[max(0, at - self._loaded) :], self._last[at:], self._positions[at:]
        self._loaded = min(self._loaded, at)

    def encode(self) -> bytes:
        """Return the content of the `.index` file."""
        entries = array("I", bytes(ENTRY_SIZE * len(self)))
        entries[0::2] = self._last
        entries[1::2] = self._positions
        return to_big_endian(entries)

    @classmethod
    def decode(cls, base_offset: int, data: Buffer, log_bytes: int) -> "OffsetIndex":
        """Read a file's entries up to the first that cannot be right (such as Kafka's zeros).

        Entries that only look right are found out where they are used, against the log.
        """
        entries = from_big_endian("I", data[: len(data) // ENTRY_SIZE * ENTRY_SIZE])
        index = cls(base_offset)
        index._last, index._positions = entries[0::2], entries[1::2]
        count = min(
            rising_count(index._last, 0, RELATIVE_OFFSET_MAX),
            rising_count(index._positions, 1, log_bytes - 1),
        )
        del index._last[count:], index._positions[count:]
        index._loaded = count
        return index


def rising_count(values: "array[int]", minimum: int, maximum: int) -> int:
    """Return how many values, from the first on, rise strictly within the bounds (inclusive).

    An index of a large segment has a quarter of a million entries: no loop in Python for a sound one.
    """
    if not values:
        return 0
    is_sound = values[0] >= minimum and values[-1] <= maximum
    if is_sound and all(map(operator.lt, values, memoryview(values)[1:])):
        return len(values)
    previous = minimum - 1
    for count, value in enumerate(values):
        if not previous < value <= maximum:
            return count
        previous = value
    return len(values)


def to_big_endian(values: "array[int]") -> bytes:
    """Return the bytes of an array as the files have them; the array is of no use afterwards."""
    if sys.byteorder == "little":
        values.byteswap()
    return values.tobytes()


def from_big_endian(kind: str, data: Buffer) -> "array[int]":
    """Return the array of this type code that the bytes of a file are."""
    values = array(kind, bytes(data))
    if sys.byteorder == "little":
        values.byteswap()
    return values

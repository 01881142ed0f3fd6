"""The offset index of a segment: from an offset to the position of its batch.

On disk (`.index`) an entry is 8 bytes: last offset of a batch, relative to the segment, and the
position at which that batch begins; one for every `index.interval.bytes` of records. In memory an
entry also has the batch's first offset, if this process appended the batch: a lookup inside that
batch then does not read the file. Follows org.apache.kafka.storage.internals.log.OffsetIndex.
"""

import operator
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.storage.files.formats import OFFSET_ENTRY

ENTRY_SIZE = OFFSET_ENTRY.size
RELATIVE_OFFSET_MAX = 2**31 - 1


class IndexPosition(NamedTuple):
    """The position at which to search for an offset: exactly there if `is_exact`, else from there
    on.

    `last_offset` is the last offset of the batch at `position`, -1 if the index does not contain
    it.
    """

    position: int
    last_offset: int
    is_exact: bool


# Built from one tuple: the class's own constructor takes twice as long.
_new_position: Callable[[tuple[int, int, bool]], IndexPosition] = partial(
    tuple.__new__, IndexPosition
)


class OffsetIndex:
    """Entries in rising order of offset and position; none points to the segment's first batch."""

    __slots__ = ("_first", "_last", "_loaded", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._last = array("I")
        self._positions = array("I")
        # The first offset of an indexed batch is not on disk: the first `_loaded` entries have no
        # `_first`.
        self._loaded = 0
        self._first = array("I")

    def __len__(self) -> int:
        return len(self._last)

    def append(self, first_offset: int, last_offset: int, position: int) -> None:
        """Add the batch that begins at `position`."""
        self._first.append(first_offset - self.base_offset)
        self._last.append(last_offset - self.base_offset)
        self._positions.append(position)

    def lookup(self, offset: int) -> IndexPosition:
        """Return the position to find the first batch whose last offset is at least `offset`."""
        relative = offset - self.base_offset
        at = bisect_left(self._last, relative)
        appended = at - self._loaded
        if 0 <= appended < len(self._first) and self._first[appended] <= relative:
            return _new_position((self._positions[at], self._last[at] + self.base_offset, True))
        if at == 0:
            # Most consumers begin at the first batch.
            return _new_position((0, -1, relative == 0))
        return _new_position(
            (self._positions[at - 1], self._last[at - 1] + self.base_offset, False)
        )

    def floor(self, position: int) -> IndexPosition:
        """Return the last entry whose position is at or before `position`."""
        at = bisect_right(self._positions, position) - 1
        if at < 0:
            return _new_position((0, -1, False))
        return _new_position((self._positions[at], self._last[at] + self.base_offset, True))

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
        """Read a file's entries up to the first that is impossible (such as Kafka's zeros).

        Entries that are possible but wrong are detected on use, by comparison with the log.
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
    """Return the number of values, from the first on, that rise strictly within the inclusive
    bounds.

    The index of a large segment has a quarter of a million entries, so a valid one is checked
    without a loop in Python.
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
    """Return the bytes of an array in file order; the array must not be used afterwards."""
    if sys.byteorder == "little":
        values.byteswap()
    return values.tobytes()


def from_big_endian(kind: str, data: Buffer) -> "array[int]":
    """Return the array of this type code that is stored in the bytes of a file."""
    values = array(kind, bytes(data))
    if sys.byteorder == "little":
        values.byteswap()
    return values

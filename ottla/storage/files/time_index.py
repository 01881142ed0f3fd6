"""The time index of a segment: from a timestamp to the offset at which a search begins.

An entry of the `.timeindex` file is 12 bytes: the largest timestamp (ms) so far, and the last
offset, relative to the segment, of the batch that has it. Timestamps rise from entry to entry.
Follows org.apache.kafka.storage.internals.log.TimeIndex.
"""

from array import array
from bisect import bisect_left
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.storage.files.formats import TIME_ENTRY
from ottla.storage.files.index import (
    RELATIVE_OFFSET_MAX,
    from_big_endian,
    rising_count,
    to_big_endian,
)

NO_TIMESTAMP = -1
TIMESTAMP_MAX = 2**63 - 1


class TimeEntry(NamedTuple):
    """No record up to `offset` is newer than `timestamp` (ms); the batch that ends there has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """Entries in rising order of timestamp and offset."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> TimeEntry:
        """The newest entry; before the first one, no timestamp at the segment's start."""
        if not self._timestamps:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(self._timestamps[-1], self._offsets[-1] + self.base_offset)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is newer than all before."""
        if timestamp > (self._timestamps[-1] if self._timestamps else NO_TIMESTAMP):
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the last entry before the first record that can be at or after `timestamp`."""
        at = bisect_left(self._timestamps, timestamp) - 1
        if at < 0:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(self._timestamps[at], self._offsets[at] + self.base_offset)

    def truncate(self, offset: int) -> None:
        """Forget the entries at or after `offset`."""
        at = bisect_left(self._offsets, max(0, offset - self.base_offset))
        del self._timestamps[at:], self._offsets[at:]

    def encode(self) -> bytes:
        """Return the content of the `.timeindex` file."""
        # Three 32-bit words an entry: two of the timestamp, one of the offset, all big-endian.
        times = array("I", to_big_endian(self._timestamps[:]))
        numbers = array("I", bytes(TIME_ENTRY.size * len(self)))
        numbers[0::3], numbers[1::3] = times[0::2], times[1::2]
        numbers[2::3] = array("I", to_big_endian(self._offsets[:]))
        return numbers.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: Buffer, next_offset: int) -> "TimeIndex":
        """Read a file's entries up to the first that is impossible."""
        index = cls(base_offset)
        numbers = array("I", bytes(data[: len(data) // TIME_ENTRY.size * TIME_ENTRY.size]))
        times = array("I", bytes(2 * 4 * (len(numbers) // 3)))
        times[0::2], times[1::2] = numbers[0::3], numbers[1::3]
        index._timestamps = from_big_endian("q", times.tobytes())
        index._offsets = from_big_endian("I", numbers[2::3].tobytes())
        limit = min(next_offset - base_offset - 1, RELATIVE_OFFSET_MAX)
        count = min(
            rising_count(index._timestamps, 0, TIMESTAMP_MAX),
            rising_count(index._offsets, 0, limit),
        )
        del index._timestamps[count:], index._offsets[count:]
        return index

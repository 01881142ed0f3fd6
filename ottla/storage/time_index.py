"""The time index of a segment: from a timestamp to the offset where the search begins.

An entry of the `.timeindex` file is 12 bytes: the largest timestamp (ms) so far, and the last offset,
relative to the segment, of the batch that has it. Timestamps rise from entry to entry.
Follows org.apache.kafka.storage.internals.log.TimeIndex.
"""

import struct
from array import array
from bisect import bisect_left
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.storage.index import RELATIVE_OFFSET_MAX

ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


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
        pack = ENTRY.pack
        return b"".join(map(pack, self._timestamps, self._offsets))

    @classmethod
    def decode(cls, base_offset: int, data: Buffer, next_offset: int) -> "TimeIndex":
        """Read a file's entries up to the first that cannot be right."""
        index = cls(base_offset)
        previous = TimeEntry(NO_TIMESTAMP, -1)
        limit = min(next_offset - base_offset, RELATIVE_OFFSET_MAX + 1)
        for timestamp, offset in ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size]):
            if timestamp <= previous.timestamp or not previous.offset < offset < limit:
                break
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
            previous = TimeEntry(timestamp, offset)
        return index

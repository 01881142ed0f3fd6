"""The end of reading: after a number of records, at the end, or at a given offset. Pure."""

from collections.abc import Mapping

from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition
from ottla.client.transport import TopicPartition


class Goal:
    """A filter that selects the records to write and decides when to stop.

    The caller passes every record and every end of a partition. `stops` holds, by partition, the
    offset at which to stop (exclusive). Records from the time `until_ms` on are left out; their
    order in a partition need not be that of their times.
    """

    def __init__(
        self,
        *,
        count: int | None = None,
        at_end: bool = False,
        stops: Mapping[TopicPartition, int] | None = None,
        until_ms: int | None = None,
    ) -> None:
        self._left = count
        self._stops = dict(stops or {})
        self._until_ms = until_ms
        self._has_end = at_end or bool(self._stops)
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._done: set[TopicPartition] = set()

    def assign(self, partitions: Mapping[TopicPartition, int]) -> None:
        """Set the partitions to read, with the start offset of each (-1 if not known)."""
        self._assigned = frozenset(partitions)
        # A partition that is assigned again may have grown.
        self._done = {
            key
            for key, offset in partitions.items()
            if key in self._stops and offset >= self._stops[key]
        }

    def wants(self, record: ConsumedRecord) -> bool:
        """Return True if this record is to be written, and count it."""
        if self._left == 0:
            return False
        key = (record.topic, record.partition)
        stop = self._stops.get(key)
        if stop is not None and record.offset + 1 >= stop:
            is_wanted = record.offset < stop and key not in self._done
            self._done.add(key)
        else:
            is_wanted = key not in self._done
        if self._until_ms is not None and record.timestamp >= self._until_ms:
            return False
        if is_wanted and self._left is not None:
            self._left -= 1
        return is_wanted

    def reach(self, end: EndOfPartition) -> None:
        """Record that a partition has been read to its current end."""
        if self._has_end:
            self._done.add((end.topic, end.partition))

    @property
    def is_reached(self) -> bool:
        """True if reading can stop."""
        if self._left == 0:
            return True
        return self._has_end and bool(self._assigned) and self._assigned <= self._done

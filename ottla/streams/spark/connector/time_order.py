"""Limits a micro-batch of several topics by time: it ends at the same timestamp in all of them.

Kafka Streams takes the oldest record of all partitions (KIP-353, KIP-695), so that a stream does
not get ahead of the table it is joined with. The same results from a micro-batch that ends, in each
partition, before the first record at or after a given timestamp: its records are sorted by time
once they are read, and all others are later. Pure functions; the caller passes a function that
looks up offsets by time.
"""

from collections.abc import Callable

from ottla.streams.spark.connector.ranges import Offsets, limit_offsets

OffsetsAt = Callable[[int], Offsets]
"""Returns the offsets of the first records at or after a time in ms; -1 if there is none."""

_END_OF_TIME_MS = 1 << 62
# How far clients' clocks may be ahead of ours: the brokers' default
# (message.timestamp.after.max.ms).
_AHEAD_MS = 3_600_000
# Stop searching once a micro-batch is this full: filling it further is not worth another request.
_FULL = 7 / 8


class TimeOrder:
    """Remembers the timestamp of the last micro-batch; the search for the next one starts there."""

    def __init__(self) -> None:
        self._since_ms = 0

    def limit(
        self, begin: Offsets, end: Offsets, max_rows: int, now_ms: int, at: OffsetsAt
    ) -> Offsets:
        """Return ends of about `max_rows` rows.

        Rows of the same timestamp are shared in proportion among the partitions. So are all rows if
        a partition's next record is from the future, because offsets behind it cannot be found by
        time.
        """
        span = _Span(begin, end, max_rows, at)
        if span.rows(end) <= max_rows:
            return end
        now_ms += _AHEAD_MS
        now = span.ends_at(now_ms)
        if any(now[key] <= begin[key] < end[key] for key in begin):
            return limit_offsets(begin, end, max_rows)
        if span.rows(now) <= max_rows:
            low, high = (now_ms, now), (_END_OF_TIME_MS, end)
        else:
            low, high = (min(self._since_ms, now_ms), begin), (now_ms, now)
        self._since_ms, result = span.search(low, high)
        return result


class _Span:
    """The rows between two offsets of each partition."""

    def __init__(self, begin: Offsets, end: Offsets, max_rows: int, at: OffsetsAt) -> None:
        self._begin = begin
        self._end = end
        self._max_rows = max_rows
        self._at = at

    def rows(self, ends: Offsets) -> int:
        """Return the number of rows before some ends."""
        return sum(ends[key] - self._begin[key] for key in ends)

    def ends_at(self, time_ms: int) -> Offsets:
        """Return the offset at which each partition reaches a time."""
        result = self._at(time_ms)
        return {
            key: end if result[key] < 0 else min(max(result[key], self._begin[key]), end)
            for key, end in self._end.items()
        }

    def search(self, low: tuple[int, Offsets], high: tuple[int, Offsets]) -> tuple[int, Offsets]:
        """Search between a timestamp with few enough rows and one with too many; return it with its
        ends.
        """
        (low_ms, low_ends), (high_ms, high_ends) = low, high
        enough = self._max_rows * _FULL
        while high_ms - low_ms > 1 and self.rows(low_ends) < enough:
            middle_ms = (low_ms + high_ms) // 2
            ends = self.ends_at(middle_ms)
            if self.rows(ends) <= self._max_rows:
                low_ms, low_ends = middle_ms, ends
            else:
                high_ms, high_ends = middle_ms, ends
        low_rows = self.rows(low_ends)
        if low_rows < enough:
            return low_ms, limit_offsets(low_ends, high_ends, self._max_rows - low_rows)
        return low_ms, low_ends

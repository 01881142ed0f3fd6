"""Aggregations by key in sliding windows (KIP-450).

One window ends at each record (its left window). Another one starts just after each record that is
followed by others (its right window). A record updates all existing windows that contain it, and
creates the windows that it is the first to require. Windows with the same records are created once.
"""

from dataclasses import dataclass, field
from typing import Any

from ottla.streams.model.records import NO_TIMESTAMP, Record, ValueAndTimestamp, unchecked_window
from ottla.streams.model.windows import SlidingWindows
from ottla.streams.operators.windowed import TimeWindowProcessor, WindowAggregate
from ottla.streams.processor.api import Processor

TimestampedValue = ValueAndTimestamp[Any]


@dataclass(frozen=True, kw_only=True)
class SlidingAggregate(WindowAggregate):
    """Aggregates the values of each key and sliding window."""

    def __call__(self) -> Processor[Any, Any, Any, Any]:
        """Create the processor."""
        return _SlidingAggregateProcessor(self)


@dataclass
class _NearbyWindows:
    """The windows around a record: which of them exist, and their aggregates."""

    starts: set[int] = field(default_factory=set)
    left: TimestampedValue | None = None
    right: TimestampedValue | None = None
    has_left: bool = False
    has_right: bool = False
    previous: int | None = None
    """The time of the previous record."""
    is_known: bool = False
    """True if a record with the same time was seen before, so that no window is missing."""


class _SlidingAggregateProcessor(TimeWindowProcessor):
    @property
    def _difference(self) -> int:
        windows = self._operator.windows
        assert isinstance(windows, SlidingWindows)
        return windows.time_difference_ms

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None or record.value is None:
            self.context.skip("due to null key or value")
            return
        close_time = self._close_time(record.timestamp)
        self._note_arrival()
        if record.timestamp + self._difference < close_time:
            window = unchecked_window((record.timestamp - self._difference, record.timestamp))
            self._late(record, window, close_time)
            return
        if record.timestamp < self._difference:
            # Windows do not start before 0; Kafka emits nothing on close for these.
            self._process_early(record, close_time)
            return
        result = self._walk_back(record, close_time)
        if not result.is_known:
            self._create(record, close_time, result)
        self._forward_closed(record, close_time)

    def _walk_back(self, record: Record[Any, Any], close_time: int) -> _NearbyWindows:
        """Update the windows that contain the record, latest first, and note which are missing."""
        time, difference = record.timestamp, self._difference
        result = _NearbyWindows()
        first = max(0, time - 2 * difference)
        for start, entry in list(
            self._store.fetch_range(record.key, first, time + 1, backward=True)
        ):
            result.starts.add(start)
            end = start + difference
            if start == time + 1:
                result.has_right = True
            elif end > time:
                # A copy: an aggregator may modify the given aggregate in place.
                result.right = result.right or self._store.fetch(record.key, start)
                self._fold_open(record, start, entry, close_time)
            elif end == time:
                result.has_left = True
                self._fold_open(record, start, entry, close_time)
                if entry.timestamp >= time:
                    result.is_known = True
                    return result
                result.previous = entry.timestamp
            else:
                result.left = entry
                result.previous = entry.timestamp
                return result
        return result

    def _fold_open(
        self, record: Record[Any, Any], start: int, entry: TimestampedValue | None, close_time: int
    ) -> None:
        window = unchecked_window((start, start + self._difference))
        if window.end >= close_time:
            self._fold(record, window, entry)
        else:
            self._late(record, window, close_time)

    def _create(self, record: Record[Any, Any], close_time: int, windows: _NearbyWindows) -> None:
        time, difference = record.timestamp, self._difference
        if windows.previous is not None:
            start = windows.previous + 1
            if start not in windows.starts and start + difference >= time:
                self._fold_open(record, start, None, close_time)
        if not windows.has_left:
            holds_previous = windows.previous is not None and time - difference <= windows.previous
            left = None
            if holds_previous and windows.left is not None:
                left = ValueAndTimestamp(windows.left.value, time)
            self._fold_open(record, time - difference, left, close_time)
        self._create_right(record, windows)

    def _create_right(self, record: Record[Any, Any], windows: _NearbyWindows) -> None:
        """Create the window just after the record if it contains records; this record is not in it."""
        right, start = windows.right, record.timestamp + 1
        if windows.has_right or right is None or right.timestamp <= record.timestamp:
            return
        window = unchecked_window((start, start + self._difference))
        self._put(record, window, right.value, right.timestamp)
        self._update(record, window, None, right.value, right.timestamp)

    def _closed_starts(self, close_time: int) -> tuple[int, int]:
        last = self._emit.last_close
        low = 0 if last == NO_TIMESTAMP else max(0, last - self._difference)
        return low, close_time - self._difference - 1

    def _process_early(self, record: Record[Any, Any], close_time: int) -> None:
        """Process a record whose left window would start before 0: the window from 0 replaces it."""
        time = record.timestamp
        result = _NearbyWindows()
        combined: TimestampedValue | None = None
        for start, entry in list(self._store.fetch_range(record.key, 0, time + 1)):
            result.starts.add(start)
            if start == 0:
                combined = entry
                if entry.timestamp < time:
                    result.previous = entry.timestamp
            elif start <= time:
                result.right = self._store.fetch(record.key, start)
                self._fold_open(record, start, entry, close_time)
            else:
                result.has_right = True
        latest = NO_TIMESTAMP if combined is None else combined.timestamp
        if result.right is None and latest > time:
            result.right = combined
        self._create_right(record, result)
        if result.previous is not None and result.previous + 1 not in result.starts:
            self._fold_open(record, result.previous + 1, None, close_time)
        self._fold_open(record, 0, combined, close_time)

"""Aggregations by key in sliding windows (KIP-450).

A window ends at each record (its left window) and one starts just after each record that has others after
it (its right window). A record updates all windows that hold it and makes those that it is the first to
need; windows whose records are the same are made once.
"""

from dataclasses import dataclass, field
from typing import Any

from ottla.streams.model.records import NO_TIMESTAMP, Record, ValueAndTimestamp, unchecked_window
from ottla.streams.model.windows import SlidingWindows
from ottla.streams.operators.windowed import TimeWindowProcessor, WindowAggregate
from ottla.streams.processor.api import Processor

Entry = ValueAndTimestamp[Any]


@dataclass(frozen=True, kw_only=True)
class SlidingAggregate(WindowAggregate):
    """Folds the values of each key and sliding window."""

    def __call__(self) -> Processor[Any, Any, Any, Any]:
        """Make the processor."""
        return _SlidingAggregateProcessor(self)


@dataclass
class _Found:
    """What the windows around a record say: which exist and what they hold."""

    starts: set[int] = field(default_factory=set)
    left: Entry | None = None
    right: Entry | None = None
    has_left: bool = False
    has_right: bool = False
    previous: int | None = None
    """The time of the record before this one."""
    is_known: bool = False
    """A record of the same time was here before: no window is missing."""


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
        found = self._walk_back(record, close_time)
        if not found.is_known:
            self._create(record, close_time, found)
        self._forward_closed(record, close_time)

    def _walk_back(self, record: Record[Any, Any], close_time: int) -> _Found:
        """Update the windows that hold the record, the latest first, and see which are missing."""
        time, difference = record.timestamp, self._difference
        found = _Found()
        first = max(0, time - 2 * difference)
        for start, entry in list(
            self._store.fetch_range(record.key, first, time + 1, backward=True)
        ):
            found.starts.add(start)
            end = start + difference
            if start == time + 1:
                found.has_right = True
            elif end > time:
                # Its own copy: an aggregator may change the aggregate that it is given in place.
                found.right = found.right or self._store.fetch(record.key, start)
                self._fold_open(record, start, entry, close_time)
            elif end == time:
                found.has_left = True
                self._fold_open(record, start, entry, close_time)
                if entry.timestamp >= time:
                    found.is_known = True
                    return found
                found.previous = entry.timestamp
            else:
                found.left = entry
                found.previous = entry.timestamp
                return found
        return found

    def _fold_open(
        self, record: Record[Any, Any], start: int, entry: Entry | None, close_time: int
    ) -> None:
        window = unchecked_window((start, start + self._difference))
        if window.end >= close_time:
            self._fold(record, window, entry)
        else:
            self._late(record, window, close_time)

    def _create(self, record: Record[Any, Any], close_time: int, found: _Found) -> None:
        time, difference = record.timestamp, self._difference
        if found.previous is not None:
            start = found.previous + 1
            if start not in found.starts and start + difference >= time:
                self._fold_open(record, start, None, close_time)
        if not found.has_left:
            holds_previous = found.previous is not None and time - difference <= found.previous
            left = None
            if holds_previous and found.left is not None:
                left = ValueAndTimestamp(found.left.value, time)
            self._fold_open(record, time - difference, left, close_time)
        self._create_right(record, found)

    def _create_right(self, record: Record[Any, Any], found: _Found) -> None:
        """Make the window just after the record, if records are in it; this one is not."""
        right, start = found.right, record.timestamp + 1
        if found.has_right or right is None or right.timestamp <= record.timestamp:
            return
        window = unchecked_window((start, start + self._difference))
        self._put(record, window, right.value, right.timestamp)
        self._update(record, window, None, right.value, right.timestamp)

    def _closed_starts(self, close_time: int) -> tuple[int, int]:
        last = self._emit.last_close
        low = 0 if last == NO_TIMESTAMP else max(0, last - self._difference)
        return low, close_time - self._difference - 1

    def _process_early(self, record: Record[Any, Any], close_time: int) -> None:
        """Take a record whose left window would start before 0: one window from 0 stands for it."""
        time = record.timestamp
        found = _Found()
        combined: Entry | None = None
        for start, entry in list(self._store.fetch_range(record.key, 0, time + 1)):
            found.starts.add(start)
            if start == 0:
                combined = entry
                if entry.timestamp < time:
                    found.previous = entry.timestamp
            elif start <= time:
                found.right = self._store.fetch(record.key, start)
                self._fold_open(record, start, entry, close_time)
            else:
                found.has_right = True
        latest = NO_TIMESTAMP if combined is None else combined.timestamp
        if found.right is None and latest > time:
            found.right = combined
        self._create_right(record, found)
        if found.previous is not None and found.previous + 1 not in found.starts:
            self._fold_open(record, found.previous + 1, None, close_time)
        self._fold_open(record, 0, combined, close_time)

"""Aggregations by key and window: tumbling and hopping windows, and code for all windows.

An operator's stream time is the largest time of its own records; a window accepts records until
stream time passes its end plus the grace period.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.records import (
    NO_TIMESTAMP,
    Change,
    Record,
    TimeWindow,
    ValueAndTimestamp,
    Windowed,
)
from ottla.streams.model.windows import SlidingWindows, TimeWindows, UnlimitedWindows
from ottla.streams.operators.aggregates import Aggregator, Initializer
from ottla.streams.operators.idle import ClosesWhenIdle
from ottla.streams.operators.views import forward_change
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]
OnLate = Callable[[Record[Any, Any]], None]


@dataclass(frozen=True, kw_only=True)
class AnyWindowAggregate:
    """The base of aggregations by window and by session.

    With `on_close`, a window is emitted once, when it is closed (KIP-825); `on_late` is called for
    each record that arrives too late for a window.
    """

    store: StoreBuilder
    initializer: Initializer
    aggregator: Aggregator
    on_close: bool = False
    send_old_values: bool = False
    on_late: OnLate | None = None
    idle_timeout_ms: int | None = None

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the table's store."""
        return (self.store,)


@dataclass(frozen=True, kw_only=True)
class WindowAggregate(AnyWindowAggregate):
    """Aggregates the values of each key and window."""

    windows: TimeWindows | UnlimitedWindows | SlidingWindows

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _WindowAggregateProcessor(self)


class EmitOnClose:
    """The schedule of emission on close: at most once per wall-clock interval, as in Kafka."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context
        self._next_ms = 0
        self.last_close = NO_TIMESTAMP

    def is_due(self, close_time: int) -> bool:
        """Return True if windows that closed by this time are to be emitted now."""
        now = self._context.current_system_time_ms()
        if now < self._next_ms:
            return False
        self._next_ms = now + self._context.emit_interval_ms
        return self.last_close < close_time


class TimeWindowProcessor(ClosesWhenIdle):
    """The base of time window processors: stream time, updates and emission on close."""

    def __init__(self, operator: WindowAggregate) -> None:
        self._operator = operator
        self._stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        """Open the store."""
        super().init(context)
        self._store = context.store(self._operator.store.name)
        self._emit = EmitOnClose(context)
        self._watch(self._operator.idle_timeout_ms)

    def _close_idle(self) -> None:
        close_time = self._close_time(self._stream_time)
        self._forward_closed(Record(None, None, self._stream_time), close_time)

    def _close_time(self, timestamp: int) -> int:
        self._stream_time = max(self._stream_time, timestamp)
        return self._stream_time - self._operator.windows.grace_period_ms

    def _late(self, record: Record[Any, Any], window: TimeWindow, close_time: int) -> None:
        self.context.skip(
            "for expired window",
            timestamp=record.timestamp,
            window=f"{window.start},{window.end}",
            expiration=close_time,
            streamTime=self._stream_time,
        )
        if self._operator.on_late is not None:
            self._operator.on_late(record)

    def _fold(
        self, record: Record[Any, Any], window: TimeWindow, entry: ValueAndTimestamp[Any] | None
    ) -> None:
        """Add a record to a window whose value is `entry`; store and forward the result."""
        operator = self._operator
        if entry is None or entry.value is None:
            start, timestamp = operator.initializer(), record.timestamp
            old = operator.initializer() if operator.send_old_values else None
        else:
            start, timestamp = entry.value, max(record.timestamp, entry.timestamp)
            # A copy: an aggregator may modify the given aggregate in place.
            former = (
                self._store.fetch(record.key, window.start) if operator.send_old_values else None
            )
            old = entry.value if former is None else former.value
        new = operator.aggregator(record.key, record.value, start)
        self._put(record, window, new, timestamp)
        self._update(record, window, old, new, timestamp)

    def _put(self, record: Record[Any, Any], window: TimeWindow, new: Any, timestamp: int) -> None:
        entry = None if new is None else ValueAndTimestamp(new, timestamp)
        self._store.put(record.key, entry, window.start)

    def _update(
        self, record: Record[Any, Any], window: TimeWindow, old: Any, new: Any, timestamp: int
    ) -> None:
        if self._operator.on_close:
            return
        key = Windowed(record.key, window)
        changed = Record(key, Change(new, old), timestamp, record.headers)
        forward_change(self.context, changed, changed.value, self._operator.send_old_values)

    def _forward_closed(self, record: Record[Any, Any], close_time: int) -> None:
        if not self._operator.on_close or not self._emit.is_due(close_time):
            return
        low, high = self._closed_starts(close_time)
        if high < 0 or high < low:
            return
        for key, entry in list(self._store.fetch_all(low, high)):
            change: Change[Any] = Change(entry.value, None)
            self.context.forward(Record(key, change, entry.timestamp, record.headers))
        self._emit.last_close = close_time

    def _closed_starts(self, close_time: int) -> tuple[int, int]:
        """Return the first and the last start of windows that closed since the last call."""
        size_ms, last = self._operator.windows.size_ms, self._emit.last_close
        low = 0 if last == NO_TIMESTAMP else max(0, last - size_ms) + 1
        return low, close_time - size_ms


class _WindowAggregateProcessor(TimeWindowProcessor):
    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.skip("due to null key")
            return
        windows = self._operator.windows
        assert not isinstance(windows, SlidingWindows)
        close_time = self._close_time(record.timestamp)
        self._note_arrival()
        for window in windows.windows_for(record.timestamp):
            if window.end > close_time:
                self._fold(record, window, self._store.fetch(record.key, window.start))
            else:
                self._late(record, window, close_time)
        self._forward_closed(record, close_time)

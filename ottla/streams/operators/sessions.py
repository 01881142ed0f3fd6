"""Aggregations by key and session: a record merges all sessions that it touches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.records import NO_TIMESTAMP, Change, Record, Windowed, unchecked_session
from ottla.streams.model.windows import SessionWindows
from ottla.streams.operators.idle import ClosesWhenIdle
from ottla.streams.operators.views import forward_change
from ottla.streams.operators.windowed import AnyWindowAggregate, EmitOnClose
from ottla.streams.processor.api import Processor, ProcessorContext

AnyProcessor = Processor[Any, Any, Any, Any]
Merger = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class SessionAggregate(AnyWindowAggregate):
    """Aggregates the values of each key and session; merged sessions get a tombstone."""

    windows: SessionWindows
    merger: Merger

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _SessionAggregateProcessor(self)


class _SessionAggregateProcessor(ClosesWhenIdle):
    def __init__(self, operator: SessionAggregate) -> None:
        self._operator = operator
        self._stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)
        self._emit = EmitOnClose(context)
        self._watch(self._operator.idle_timeout_ms)

    def _close_idle(self) -> None:
        record: Record[Any, Any] = Record(None, None, self._stream_time)
        self._forward_closed(record, self._close_time())

    def _close_time(self) -> int:
        windows = self._operator.windows
        return self._stream_time - windows.grace_period_ms - windows.inactivity_gap_ms

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.skip("due to null key")
            return
        windows, time = self._operator.windows, record.timestamp
        gap = windows.inactivity_gap_ms
        self._stream_time = max(self._stream_time, time)
        close_time = self._close_time()
        self._note_arrival()
        touched = list(self._store.walk(record.key, time - gap, time + gap))
        aggregate = self._operator.initializer()
        start = end = time
        for session, value in touched:
            aggregate = self._operator.merger(record.key, aggregate, value)
            start, end = min(start, session.window.start), max(end, session.window.end)
        if end < close_time:
            self.context.skip(
                "for expired window",
                timestamp=time,
                window=f"{start},{end}",
                expiration=close_time,
                streamTime=self._stream_time,
            )
            if self._operator.on_late is not None:
                self._operator.on_late(record)
        else:
            if (start, end) != (time, time):
                self._remove(record.key, touched)
            self._put(record, Windowed(record.key, unchecked_session((start, end))), aggregate)
        self._forward_closed(record, close_time)

    def _remove(self, key: Any, sessions: list[tuple[Windowed[Any], Any]]) -> None:
        for session, _ in sessions:
            # Read again: the merger may have modified the given value in place.
            old = self._store.fetch_session(key, *session.window)
            self._store.remove(session)
            self._update(session, old, None)

    def _put(self, record: Record[Any, Any], session: Windowed[Any], aggregate: Any) -> None:
        new = self._operator.aggregator(record.key, record.value, aggregate)
        self._store.put(session, new)
        self._update(session, None, new)

    def _update(self, session: Windowed[Any], old: Any, new: Any) -> None:
        if self._operator.on_close:
            return
        changed = Record(session, Change(new, old), session.window.end)
        forward_change(self.context, changed, changed.value, self._operator.send_old_values)

    def _forward_closed(self, record: Record[Any, Any], close_time: int) -> None:
        if not self._operator.on_close or not self._emit.is_due(close_time):
            return
        low, high = max(0, self._emit.last_close), close_time - 1
        if high < 0 or high < low:
            return
        for session, value in list(self._store.find_ended(low, high)):
            change: Change[Any] = Change(value, None)
            self.context.forward(Record(session, change, session.window.end, record.headers))
        self._emit.last_close = close_time

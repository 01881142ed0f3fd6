"""Windowed joins of two streams (KIP-633 for outer joins).

Each side stores its records in a window store and looks for matches in the other's. In an outer
join, records without a match wait until their window and the grace period are over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.records import Record
from ottla.streams.model.windows import JoinWindows
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.stores.buffers import OuterKey
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]
Joiner = Callable[[Any, Any, Any], Any]
"""A function of the key, the left and the right value."""

_FOREVER = (1 << 63) - 1
_LEFT, _RIGHT = 1, 0


@dataclass(frozen=True)
class JoinWindowed:
    """Forwards each record, then stores it for the other side."""

    store: StoreBuilder

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the side's window store."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _JoinWindowedProcessor(self)


class _JoinWindowedProcessor(AnyProcessor):
    def __init__(self, operator: JoinWindowed) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        # Store this record only after it was joined: a record must not match itself.
        self.context.forward(record)
        if record.key is not None:
            self._store.put(record.key, record.value, record.timestamp)


@dataclass(frozen=True)
class StreamJoin:
    """One side of a join: the left or the right one; with `outer`, records without a match are
    kept.
    """

    windows: JoinWindows
    joiner: Joiner
    is_left: bool
    outer: bool
    other_store: StoreBuilder
    outer_store: StoreBuilder | None

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the other side's window store, and the store of unjoined records."""
        waiting = () if self.outer_store is None else (self.outer_store,)
        return (self.other_store, *waiting)

    @property
    def reach(self) -> tuple[int, int]:
        """The maximum distance of a match before and after, in milliseconds."""
        windows = self.windows
        sides = windows.before_ms, windows.after_ms
        return sides if self.is_left else (sides[1], sides[0])

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _StreamJoinProcessor(self)


class _StreamJoinProcessor(AnyProcessor):
    def __init__(self, operator: StreamJoin) -> None:
        self._operator = operator
        self._before, self._after = operator.reach
        self._grace = operator.windows.grace_period_ms
        self._side = _LEFT if operator.is_left else _RIGHT
        self._waiting: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._other = context.store(self._operator.other_store.name)
        if self._operator.outer_store is not None:
            self._waiting = context.store(self._operator.outer_store.name)

    def _join(self, key: Any, this: Any, other: Any) -> Any:
        if self._operator.is_left:
            return self._operator.joiner(key, this, other)
        return self._operator.joiner(key, other, this)

    def _forward_alone(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_value(self._join(record.key, record.value, None)))

    def process(self, record: Record[Any, Any]) -> None:
        waiting, time, outer = self._waiting, record.timestamp, self._operator.outer
        if waiting is not None:
            waiting.stream_time = max(waiting.stream_time, time)
        if record.key is None or record.value is None:
            if outer and record.value is not None:
                self._forward_alone(record)
            else:
                self.context.skip("due to null key or value")
            return
        if waiting is not None and time == waiting.stream_time:
            self._emit_unjoined(record)
        time_from, time_to = max(0, time - self._before), max(0, time + self._after)
        partners = list(self._other.fetch_range(record.key, time_from, time_to))
        for other_time, other in partners:
            self._emit_joined(record, other_time, other)
        if outer and not partners:
            self._wait(record, time_to)

    def _emit_joined(self, record: Record[Any, Any], other_time: int, other: Any) -> None:
        if self._waiting is not None:
            other_side = _RIGHT if self._side == _LEFT else _LEFT
            self._waiting.delete(self._waiting.outer_key(other_time, other_side, record.key))
        joined = record.with_value(self._join(record.key, record.value, other))
        self.context.forward(joined.with_timestamp(max(record.timestamp, other_time)))

    def _wait(self, record: Record[Any, Any], time_to: int) -> None:
        waiting = self._waiting
        if waiting is None or time_to < waiting.stream_time:
            self._forward_alone(record)
            return
        waiting.min_time = min(waiting.min_time, record.timestamp)
        waiting.put(waiting.outer_key(record.timestamp, self._side, record.key), record)

    def _emit_unjoined(self, record: Record[Any, Any]) -> None:
        """Forward the unjoined records whose window and grace period are over."""
        waiting = self._waiting
        expiry_time = waiting.min_time + self._after + self._grace
        # If no record is waiting, Kafka's sum overflows when anything is added, and the check
        # proceeds: it counts for the interval.
        overflows = expiry_time > _FOREVER
        if not overflows and expiry_time >= waiting.stream_time:
            return
        now = self.context.current_system_time_ms()
        if now < waiting.next_emit_ms:
            return
        waiting.next_emit_ms = now + self.context.emit_interval_ms
        waiting.min_time = _FOREVER
        open_sides: set[int] = set()
        expired: list[OuterKey] = []
        for outer_key, waited in waiting.all():
            waiting.min_time = outer_key.timestamp
            if len(open_sides) == 2:
                break
            if self._is_open(outer_key):
                open_sides.add(outer_key.side)
                continue
            self._forward_unjoined(record, outer_key, waited)
            expired.append(outer_key)
        for outer_key in expired:
            waiting.delete(outer_key)

    def _is_open(self, outer_key: OuterKey) -> bool:
        windows = self._operator.windows
        reach = windows.after_ms if outer_key.side == _LEFT else windows.before_ms
        open_until: int = outer_key.timestamp + reach + self._grace
        stream_time: int = self._waiting.stream_time
        return open_until >= stream_time

    def _forward_unjoined(
        self, record: Record[Any, Any], outer_key: OuterKey, waited: Record[Any, Any]
    ) -> None:
        sides = (waited.value, None) if outer_key.side == _LEFT else (None, waited.value)
        value = self._operator.joiner(waited.key, *sides)
        self.context.forward(Record(waited.key, value, outer_key.timestamp, record.headers))

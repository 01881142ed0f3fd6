"""Aggregations by key, of streams and of grouped tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.errors import StreamsError
from ottla.streams.model.records import Change, Record
from ottla.streams.operators.views import forward_change
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]
Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
"""A function of key, value and aggregate that returns the new aggregate, or None to remove it."""


@dataclass(frozen=True)
class StreamAggregate:
    """Aggregates the values of each key; without an initializer, the first value is the start
    (reduce).
    """

    store: StoreBuilder
    initializer: Initializer | None
    aggregator: Aggregator
    send_old_values: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the table's store."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _StreamAggregateProcessor(self)


class _StreamAggregateProcessor(AnyProcessor):
    def __init__(self, operator: StreamAggregate) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        key, value, timestamp, _ = record
        if key is None or value is None:
            self.context.skip("due to null key or value")
            return
        operator = self._operator
        entry = self._store.get(key)
        old = self._current(key) if operator.send_old_values else None
        if entry is None:
            start = self._start()
        else:
            start, latest = entry
            timestamp = max(timestamp, latest)
        if start is None and operator.initializer is None:
            new = value
        else:
            new = operator.aggregator(key, value, start)
        is_latest = self._store.put_at(key, new, timestamp)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            aged = record if timestamp == record.timestamp else record.with_timestamp(timestamp)
            change = Change(new, old, is_latest)
            forward_change(self.context, aged, change, operator.send_old_values)

    def _start(self) -> Any:
        return None if self._operator.initializer is None else self._operator.initializer()

    def _current(self, key: Any) -> Any:
        # A copy: an aggregator may modify the given aggregate in place.
        entry = self._store.get(key)
        return self._start() if entry is None else entry.value


@dataclass(frozen=True)
class TableAggregate:
    """Aggregates the entries of each group: the subtractor removes the old value, the adder adds
    the new.

    Without an initializer, the first value is the start (reduce).
    """

    store: StoreBuilder
    initializer: Initializer | None
    adder: Aggregator
    subtractor: Aggregator
    send_old_values: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the table's store."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableAggregateProcessor(self)


class _TableAggregateProcessor(AnyProcessor):
    def __init__(self, operator: TableAggregate) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            name = self._operator.store.name
            raise StreamsError(
                f"a record for the table {name} has no key: filter such records before grouping"
            )
        change: Change[Any] = record.value
        entry = self._store.get(record.key)
        aggregate = None if entry is None else entry.value
        timestamp = record.timestamp
        if change.old_value is not None and entry is not None:
            aggregate = self._operator.subtractor(record.key, change.old_value, aggregate)
            timestamp = max(timestamp, entry.timestamp)
        if change.new_value is not None:
            if entry is not None and (aggregate is not None or self._operator.initializer):
                timestamp = max(timestamp, entry.timestamp)
            aggregate = self._add(record.key, change.new_value, aggregate)
        send_old = self._operator.send_old_values
        before = self._store.get(record.key) if send_old else None
        is_latest = self._store.put_at(record.key, aggregate, timestamp)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            changed = Change(aggregate, before.value if before else None, is_latest)
            forward_change(self.context, record.with_timestamp(timestamp), changed, send_old)

    def _add(self, key: Any, value: Any, aggregate: Any) -> Any:
        if aggregate is None:
            if self._operator.initializer is None:
                return value
            aggregate = self._operator.initializer()
        return self._operator.adder(key, value, aggregate)

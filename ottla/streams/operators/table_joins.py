"""Joins with tables by key: of a stream with a table or a global table, and of two tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.errors import TopologyError
from ottla.streams.model.records import Change, Record, ValueAndTimestamp
from ottla.streams.operators.views import (
    OUT_OF_ORDER,
    Getter,
    OptionallyStored,
    TimestampedValue,
    View,
    forward_change,
)
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.stores.buffers import BufferedRecord
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]


@dataclass(frozen=True)
class StreamTableJoin:
    """Joins each stream record with the table's value; a left join also forwards records without
    one.

    `key_mapper` selects the entry of a global table. With a buffer, records wait `grace_ms` of
    stream time for a versioned table to catch up (KIP-923).
    """

    view: View
    joiner: Callable[[Any, Any, Any], Any]
    left: bool
    key_mapper: Callable[[Any, Any], Any] | None = None
    buffer: StoreBuilder | None = None

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the buffer, if there is one."""
        return () if self.buffer is None else (self.buffer,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _StreamTableJoinProcessor(self)


class _StreamTableJoinProcessor(AnyProcessor):
    def __init__(self, operator: StreamTableJoin) -> None:
        self._operator = operator
        self._buffer: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table: Any = self._operator.view.open(context)
        if self._operator.buffer is not None:
            if not self._table.versioned:
                raise TopologyError("a join with a grace needs a versioned table")
            self._buffer = context.store(self._operator.buffer.name)

    def _table_key(self, record: Record[Any, Any]) -> Any:
        mapper = self._operator.key_mapper
        return record.key if mapper is None else mapper(record.key, record.value)

    def process(self, record: Record[Any, Any]) -> None:
        if record.value is None or (self._table_key(record) is None and not self._operator.left):
            self.context.skip("due to null join key or value")
            return
        if self._buffer is None:
            self._join(record)
        elif record.key is None:
            # There is no value to join with.
            self._join(record)
        elif not self._buffer.put(BufferedRecord(record, self.context.record_metadata)):
            self._join(record)
        else:
            for buffered in self._buffer.due():
                with self.context.as_of(buffered.metadata):
                    self._join(buffered.record)

    def _join(self, record: Record[Any, Any]) -> None:
        key = self._table_key(record)
        entry = None
        if key is not None and self._table.versioned:
            entry = self._table.get_as_of(key, record.timestamp)
        elif key is not None:
            entry = self._table.get(key)
        if entry is not None or self._operator.left:
            other = None if entry is None else entry.value
            value = self._operator.joiner(record.key, record.value, other)
            self.context.forward(record.with_value(value))


@dataclass(frozen=True)
class TableJoin:
    """One side of a join of two tables: joins each change with the other table's value.

    `needs_this` and `needs_other` are True if there is no result without this or the other value.
    """

    this: View
    other: View
    joiner: Callable[[Any, Any], Any]
    """A function whose first value is this side's."""
    needs_this: bool
    needs_other: bool
    send_old_values: bool = False
    versioned_semantics: bool = False

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableJoinProcessor(self)

    def result(self, this: Any, other: Any) -> Any:
        """Return the joined value, or None if no value matches."""
        if this is None and (self.needs_this or other is None):
            return None
        if other is None and self.needs_other:
            return None
        return self.joiner(this, other)

    def view(self) -> View:
        """Return the view of the joined table, which reads both tables."""
        this, other = self.this, self.other

        def open_both(context: ProcessorContext) -> Getter:
            return _JoinGetter(self, this.open(context), other.open(context))

        return View(tuple(dict.fromkeys((*this.stores, *other.stores))), open_both)


class _JoinGetter:
    versioned = False

    def __init__(self, operator: TableJoin, this: Getter, other: Getter) -> None:
        self._operator = operator
        self._this = this
        self._other = other

    def get(self, key: Any) -> TimestampedValue | None:
        return self._join(self._this.get(key), self._other.get(key))

    def get_forwarded(self, key: Any) -> TimestampedValue | None:
        return self._join(self._this.get_forwarded(key), self._other.get_forwarded(key))

    def _join(
        self, this: TimestampedValue | None, other: TimestampedValue | None
    ) -> TimestampedValue | None:
        value = self._operator.result(this and this.value, other and other.value)
        if value is None:
            return None
        return ValueAndTimestamp(value, max(joined.timestamp for joined in (this, other) if joined))


class _TableJoinProcessor(AnyProcessor):
    def __init__(self, operator: TableJoin) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._other = self._operator.other.open(context)

    def process(self, record: Record[Any, Any]) -> None:
        operator = self._operator
        change: Change[Any] = record.value
        if record.key is None:
            self.context.skip("due to null key")
            return
        if operator.versioned_semantics and not change.is_latest:
            self.context.skip(OUT_OF_ORDER)
            return
        # If the other table's latest change is still in a cache, it is joined when it is forwarded:
        # with it, the old result below would be one that was never forwarded.
        entry = self._other.get_forwarded(record.key)
        if entry is None:
            nothing = change.new_value is None and change.old_value is None
            if operator.needs_other or nothing:
                return
        other = None if entry is None else entry.value
        new = operator.result(change.new_value, other)
        old = operator.result(change.old_value, other) if operator.send_old_values else None
        timestamp = record.timestamp if entry is None else max(record.timestamp, entry.timestamp)
        joined = Change(new, old, change.is_latest)
        self.context.forward(record.with_value(joined).with_timestamp(timestamp))


@dataclass(frozen=True)
class TableJoinMerge(OptionallyStored):
    """Merges the results of both sides, and stores them if the join has a store."""

    store: StoreBuilder | None = None
    send_old_values: bool = False

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableJoinMergeProcessor(self)


class _TableJoinMergeProcessor(AnyProcessor):
    def __init__(self, operator: TableJoinMerge) -> None:
        self._operator = operator
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        if self._operator.store is not None:
            self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        change: Change[Any] = record.value
        is_latest: bool | None = change.is_latest
        if self._store is not None:
            is_latest = self._store.put_at(record.key, change.new_value, record.timestamp)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            changed = Change(change.new_value, change.old_value, is_latest)
            forward_change(self.context, record, changed, self._operator.send_old_values)

"""Operators of tables: sources, filters, mappings and the repartitioning of a grouping.

Each processes and forwards changes (new and old value); a tombstone is a new value of None.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.streams.model.records import Change, Record
from ottla.streams.operators.stateless import pair_of
from ottla.streams.operators.views import OptionallyStored, forward_change
from ottla.streams.processor.api import Processor, ProcessorContext, supplied_stores
from ottla.streams.serdes import Serde, resolve
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]


@dataclass(frozen=True)
class TableSource:
    """Reads a topic or a stream as a table; stores it if another operator or a query needs the
    store.
    """

    store: StoreBuilder
    materialized: bool = False
    send_old_values: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the table's store."""
        return (self.store,) if self.materialized else ()

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableSourceProcessor(self)


class _TableSourceProcessor(AnyProcessor):
    def __init__(self, operator: TableSource) -> None:
        self._operator = operator
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        if self._operator.materialized:
            self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.skip("due to null key")
            return
        if self._store is None:
            self.context.forward(record.with_value(Change(record.value, None)))
            return
        old = self._store.get(record.key) if self._operator.send_old_values else None
        is_latest = self._store.put_at(record.key, record.value, record.timestamp)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            change = Change(record.value, old.value if old else None, is_latest)
            forward_change(self.context, record, change, self._operator.send_old_values)


@dataclass(frozen=True)
class TableMap(OptionallyStored):
    """Maps each value of a table to a new one; None removes the entry (a filter is such a mapping).

    With `drops_unseen`, a change from no value to no value is not forwarded, as in Kafka's filter.
    """

    mapper: Callable[[Any, Any], Any]
    store: StoreBuilder | None = None
    send_old_values: bool = False
    drops_unseen: bool = False
    versioned_semantics: bool = False

    def value_of(self, key: Any, value: Any) -> Any:
        """Return the new value of an entry."""
        return None if value is None else self.mapper(key, value)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableMapProcessor(self)


class _TableMapProcessor(AnyProcessor):
    def __init__(self, operator: TableMap) -> None:
        self._operator = operator
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        if self._operator.store is not None:
            self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        operator = self._operator
        change: Change[Any] = record.value
        new = operator.value_of(record.key, change.new_value)
        old = self._old(record.key, change)
        unseen = operator.send_old_values and new is None and old is None
        if operator.drops_unseen and unseen and not operator.versioned_semantics:
            return
        is_latest: bool | None = change.is_latest
        if self._store is not None:
            is_latest = self._store.put_at(record.key, new, record.timestamp)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            changed = Change(new, old, is_latest)
            forward_change(self.context, record, changed, operator.send_old_values)

    def _old(self, key: Any, change: Change[Any]) -> Any:
        if not self._operator.send_old_values:
            return None
        if self._store is None:
            return self._operator.value_of(key, change.old_value)
        entry = self._store.get(key)
        return entry.value if entry else None


class ValueTransformer(Protocol):
    """Transforms values with access to stores; one per task (Kafka's ValueTransformerWithKey)."""

    def init(self, context: ProcessorContext) -> None:
        """Initialize the transformer."""

    def transform(self, key: Any, value: Any) -> Any:
        """Return the new value; the given value may be None."""

    def close(self) -> None:
        """Close the transformer."""


@dataclass(frozen=True)
class TableTransform(OptionallyStored):
    """Transforms each value of a table with access to stores; the transformer is also called for
    tombstones.
    """

    supplier: Callable[[], ValueTransformer]
    store: StoreBuilder | None = None
    send_old_values: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the transformer's stores, and the store of the result if it has one."""
        return (*supplied_stores(self.supplier), *super().stores)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableTransformProcessor(self)


class _TableTransformProcessor(AnyProcessor):
    def __init__(self, operator: TableTransform) -> None:
        self._operator = operator
        self._transformer = operator.supplier()
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._transformer.init(context)
        if self._operator.store is not None:
            self._store = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        change: Change[Any] = record.value
        send_old = self._operator.send_old_values
        new = self._transformer.transform(record.key, change.new_value)
        is_latest: bool | None = change.is_latest
        old = None
        if self._store is not None:
            entry = self._store.get(record.key) if send_old else None
            old = entry.value if entry else None
            is_latest = self._store.put_at(record.key, new, record.timestamp)
        elif send_old:
            old = self._transformer.transform(record.key, change.old_value)
        # If None, the store has dropped and counted the put.
        if is_latest is not None:
            forward_change(self.context, record, Change(new, old, is_latest), send_old)

    def close(self) -> None:
        self._transformer.close()


@dataclass(frozen=True)
class TableRepartitionMap:
    """Sets the group as the key of each entry; the old group gets a removal.

    `key` is the serde of the groups, None for the default, and `topic` the repartition topic.
    """

    selector: Callable[[Any, Any], tuple[Any, Any]]
    key: Serde[Any] | None = None
    topic: str = ""
    versioned_semantics: bool = False

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _TableRepartitionMapProcessor(self)


class _TableRepartitionMapProcessor(AnyProcessor):
    def __init__(self, operator: TableRepartitionMap) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        operator = self._operator
        key = resolve(operator.key, context.default_serdes.key)
        topic = f"{context.application_id}-{operator.topic}"
        self._write_key = key.of(topic, is_key=True).serialize

    def _is_same_group(self, first_key: Any, second_key: Any) -> bool:
        # 1, 1.0 and True are equal, but their bytes differ: they are groups of their own.
        return bool(
            first_key == second_key and self._write_key(first_key) == self._write_key(second_key)
        )

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        result = None if value is None else self._operator.selector(key, value)
        if result is None:
            return None
        pair = pair_of(result)
        return None if pair[0] is None or pair[1] is None else pair

    def process(self, record: Record[Any, Any]) -> None:
        change: Change[Any] = record.value
        if self._operator.versioned_semantics and not change.is_latest:
            return
        new = self._pair(record.key, change.new_value)
        old = self._pair(record.key, change.old_value)
        if old is not None and new is not None and self._is_same_group(old[0], new[0]):
            self._forward(record, new[0], Change(new[1], old[1], change.is_latest))
            return
        if old is not None:
            self._forward(record, old[0], Change(None, old[1], change.is_latest))
        if new is not None:
            self._forward(record, new[0], Change(new[1], None, change.is_latest))

    def _forward(self, record: Record[Any, Any], key: Any, change: Change[Any]) -> None:
        self.context.forward(Record(key, change, record.timestamp, record.headers))

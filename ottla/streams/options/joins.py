"""The options of joins: Joined, StreamJoined, TableJoined."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, overload

from ottla.streams.expressions.functions import K, V
from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.options.dsl_options import WithSerdes
from ottla.streams.processor.api import StreamPartitioner
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import StoreBuilder, StoreType


@dataclass(frozen=True)
class Joined(WithSerdes[K, V]):
    """Options for joining a stream with a table."""

    name: str | None = None
    grace: Duration | None = None
    """How long records wait for updates of a versioned table."""

    @classmethod
    def with_(
        cls,
        key: Serde[K] | None,
        value: Serde[V] | None,
        other_value: Serde[Any] | None = None,
        name: str | None = None,
        grace: Duration | None = None,
    ) -> "Joined[K, V]":
        """Return options with these serdes. `other_value` is ignored: the table's own serde is
        used.
        """
        del other_value
        return cls(key, value, name, grace)

    @classmethod
    def as_(cls, name: str) -> "Joined[Any, Any]":
        """Return options with a name."""
        return Joined(name=name)

    @classmethod
    def other_value_serde(cls, other_value: Serde[Any]) -> "Joined[Any, Any]":
        """Return default options. `other_value` is ignored: the table's own serde is used."""
        return Joined()

    def with_other_value_serde(self, other_value: Serde[Any]) -> "Joined[K, V]":
        """Return the same options. `other_value` is ignored: the table's own serde is used."""
        return self

    def with_grace_period(self, grace: Duration) -> "Joined[K, V]":
        """Return a copy with a grace period, for which records wait for a versioned table."""
        return replace(self, grace=grace)

    @property
    def grace_ms(self) -> int | None:
        """The grace period in milliseconds."""
        return None if self.grace is None else milliseconds(self.grace)


@dataclass(frozen=True)
class StreamJoined(WithSerdes[Any, Any]):
    """Options for joining two streams: the serdes and names of their stores, and the operator's
    name.
    """

    other_value: Serde[Any] | None = None
    name: str | None = None
    store_name: str | None = None
    logging_enabled: bool = True
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    stores: tuple[StoreBuilder | None, StoreBuilder | None] = (None, None)
    """The supplied stores of this stream and of the other one; None for the default store."""
    store_type: StoreType | None = None
    """Where the local engine keeps the stores; None: the application's `default_dsl_store`."""

    @overload
    @classmethod
    def with_(
        cls, key: Serde[Any] | None, value: Serde[Any] | None, other_value: Serde[Any] | None
    ) -> "StreamJoined": ...
    @overload
    @classmethod
    def with_(cls, key: StoreBuilder, value: StoreBuilder) -> "StreamJoined": ...
    @classmethod
    def with_(cls, key: Any, value: Any, other_value: Any = None) -> "StreamJoined":
        """Return options with these serdes, or with these two stores."""
        if isinstance(key, StoreBuilder):
            return cls(stores=(key, value))
        return cls(key, value, other_value)

    def with_this_store_supplier(self, store: StoreBuilder) -> "StreamJoined":
        """Return a copy with a store for this stream, which must keep duplicates and the join's
        retention.
        """
        return replace(self, stores=(store, self.stores[1]))

    def with_other_store_supplier(self, store: StoreBuilder) -> "StreamJoined":
        """Return a copy with a store for the other stream."""
        return replace(self, stores=(self.stores[0], store))

    def with_dsl_store_suppliers(self, suppliers: StoreType | str) -> "StreamJoined":
        """Return a copy whose stores the local engine keeps on disk or in memory (KIP-954)."""
        return replace(self, store_type=StoreType.of(suppliers))

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "StreamJoined":
        """Return a copy with changelogs; `config` has additional options of their topics."""
        return replace(self, logging_enabled=True, log_config=dict(config or {}))

    @classmethod
    def as_(cls, store_name: str) -> "StreamJoined":
        """Return options with a base name for the stores."""
        return cls(store_name=store_name)

    def with_other_value_serde(self, other_value: Serde[Any]) -> "StreamJoined":
        """Return a copy with another serde for the other stream's values."""
        return replace(self, other_value=other_value)

    def with_store_name(self, store_name: str) -> "StreamJoined":
        """Return a copy with another base name for the stores."""
        return replace(self, store_name=store_name)

    def with_logging_disabled(self) -> "StreamJoined":
        """Return a copy without changelogs."""
        return replace(self, logging_enabled=False)


@dataclass(frozen=True)
class TableJoined(SnakeCase):
    """Options for joining two tables by a foreign key."""

    name: str | None = None
    partitioner: StreamPartitioner | None = None
    """The partitioner of this table's keys; responses of the join are routed back by themselves."""
    other_partitioner: StreamPartitioner | None = None
    """The partitioner of the other table's keys: `(topic, key, None, number of partitions)`."""

    @classmethod
    def with_(
        cls, partitioner: StreamPartitioner | None, other_partitioner: StreamPartitioner | None
    ) -> "TableJoined":
        """Return options with partitioners for tables that are not partitioned by key hash
        (KIP-775).
        """
        return cls(None, partitioner, other_partitioner)

    def with_partitioner(self, partitioner: StreamPartitioner) -> "TableJoined":
        """Return a copy with another partitioner of this table."""
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, partitioner: StreamPartitioner) -> "TableJoined":
        """Return a copy with another partitioner of the other table."""
        return replace(self, other_partitioner=partitioner)

    def with_name(self, name: str) -> "TableJoined":
        """Return a copy with another name."""
        return replace(self, name=name)

    @classmethod
    def as_(cls, name: str) -> "TableJoined":
        """Return options with a name."""
        return cls(name)

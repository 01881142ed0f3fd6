"""Kafka Streams' configuration objects: immutable, all fields optional, keyword arguments or `with_…`.

Every operator also takes the same things as keyword arguments; an object that is given as well wins.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar, cast, overload

from ottla.streams.expressions.arity import evaluated
from ottla.streams.expressions.functions import K, V
from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.processor.api import StreamPartitioner, TimestampExtractor
from ottla.streams.serdes import Serde, check_serdes
from ottla.streams.stores.builders import StoreBuilder

T = TypeVar("T")
OptionT = TypeVar("OptionT")


@dataclass(frozen=True)
class Named(SnakeCase):
    """The name of an operator; a plain string does as well."""

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "an operator")

    @classmethod
    def as_(cls, name: str) -> "Named":
        """Return a name."""
        return cls(name)

    def with_name(self, name: str) -> "Named":
        """Return another name."""
        return Named(name)


Name = Named | str | None


def name_of(named: "Named | str | None") -> str | None:
    """Return the name itself; TypeError for another option, which has no place there."""
    if named is None or isinstance(named, str):
        return named
    if not isinstance(named, Named):
        raise TypeError(f"an operator is named by a text or Named.as_(…), not by {_shown(named)}")
    return named.name


def _shown(option: Any) -> str:
    kind = type(option).__name__
    return f"a {kind}" if isinstance(option, SnakeCase) else repr(option)


def of_kind(option: OptionT | None, kind: type[OptionT], what: str) -> OptionT | None:
    """Return an option; TypeError for one of another kind."""
    if option is not None and not isinstance(option, kind):
        name = kind.__name__
        raise TypeError(f"{what} is told with a {name}, as in {name}.as_(…), not {_shown(option)}")
    return option


@dataclass(frozen=True)
class _WithSerdes(SnakeCase, Generic[K, V]):
    """What options that name serdes share; each also has a name."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None

    def __post_init__(self) -> None:
        check_serdes(self.key, self.value)

    def _changed(self, **changes: Any) -> Self:
        changed: Self = replace(cast(Any, self), **changes)
        return changed

    @classmethod
    def key_serde(cls, key: Serde[K]) -> Self:
        """Return the same with nothing but a serde of keys."""
        return cls(key)

    @classmethod
    def value_serde(cls, value: Serde[V]) -> Self:
        """Return the same with nothing but a serde of values."""
        return cls(None, value)

    def with_key_serde(self, key: Serde[K]) -> Self:
        """Return the same with another serde of keys."""
        return self._changed(key=key)

    def with_value_serde(self, value: Serde[V]) -> Self:
        """Return the same with another serde of values."""
        return self._changed(value=value)

    def with_name(self, name: str) -> Self:
        """Return the same under a name."""
        return self._changed(name=name)


@dataclass(frozen=True)
class Consumed(_WithSerdes[K, V]):
    """How a topic is read."""

    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    name: str | None = None

    @overload
    @classmethod
    def with_(
        cls,
        key: Serde[K] | None,
        value: Serde[V] | None,
        timestamp_extractor: TimestampExtractor | None = None,
        reset: str | None = None,
    ) -> "Consumed[K, V]": ...
    @overload
    @classmethod
    def with_(cls, key: TimestampExtractor | str) -> "Consumed[Any, Any]": ...
    @classmethod
    def with_(
        cls, key: Any, value: Any = None, timestamp_extractor: Any = None, reset: str | None = None
    ) -> "Consumed[Any, Any]":
        """Return how to read with these serdes; or with nothing but an extractor, or where to start."""
        if isinstance(key, str):
            return Consumed(offset_reset=key)
        if (callable(key) or evaluated(key) is not None) and value is None:
            return Consumed(timestamp_extractor=key)
        return Consumed(key, value, timestamp_extractor, reset)

    @classmethod
    def as_(cls, name: str) -> "Consumed[Any, Any]":
        """Return how to read under a name."""
        return Consumed(name=name)

    def with_offset_reset_policy(self, reset: str) -> "Consumed[K, V]":
        """Return the same with where to start without a position: earliest or latest."""
        return replace(self, offset_reset=reset)

    def with_timestamp_extractor(self, extractor: TimestampExtractor) -> "Consumed[K, V]":
        """Return the same with another source of time."""
        return replace(self, timestamp_extractor=extractor)


@dataclass(frozen=True)
class Produced(_WithSerdes[K, V]):
    """How a topic is written."""

    partitioner: StreamPartitioner | None = None
    name: str | None = None

    @classmethod
    def with_(
        cls,
        key: Serde[K] | None,
        value: Serde[V] | None,
        partitioner: StreamPartitioner | None = None,
    ) -> "Produced[K, V]":
        """Return how to write with these serdes, and maybe to which partitions."""
        return cls(key, value, partitioner)

    @classmethod
    def as_(cls, name: str) -> "Produced[Any, Any]":
        """Return how to write under a name."""
        return Produced(name=name)

    @classmethod
    def stream_partitioner(cls, partitioner: StreamPartitioner) -> "Produced[Any, Any]":
        """Return how to write with nothing but a choice of partitions."""
        return Produced(partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Produced[K, V]":
        """Return the same with another choice of partitions."""
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True)
class Printed(SnakeCase):
    """How the records of a stream are printed: to standard output, or to the end of a file."""

    path: str | None = None
    label: str | None = None
    mapper: Callable[..., str] | None = None
    name: str | None = None

    @classmethod
    def to_sys_out(cls) -> "Printed":
        """Print to standard output."""
        return cls()

    @classmethod
    def to_file(cls, path: str) -> "Printed":
        """Print to the end of a file."""
        if not path:
            raise TopologyError(f"records are printed to a file by its path, not to {path!r}")
        return cls(path)

    def with_label(self, label: str) -> "Printed":
        """Return the same with what each line begins with; the stream's name otherwise."""
        return replace(self, label=label)

    def with_key_value_mapper(self, mapper: Callable[..., str]) -> "Printed":
        """Return the same with what is printed of key and value."""
        return replace(self, mapper=mapper)

    def with_name(self, name: str) -> "Printed":
        """Return the same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Grouped(_WithSerdes[K, V]):
    """How a group is named and written to its repartition topic, if it needs one."""

    name: str | None = None

    @overload
    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Grouped[K, V]": ...
    @overload
    @classmethod
    def with_(cls, key: str, value: Serde[K] | None, other: Serde[V] | None) -> "Grouped[K, V]": ...
    @classmethod
    def with_(cls, key: Any, value: Any, other: Any = None) -> "Grouped[Any, Any]":
        """Return a group with these serdes, with a name before them or without one."""
        return Grouped(value, other, key) if isinstance(key, str) else Grouped(key, value)

    @classmethod
    def as_(cls, name: str) -> "Grouped[Any, Any]":
        """Return a group with this name."""
        return Grouped(name=name)


@dataclass(frozen=True)
class Repartitioned(_WithSerdes[K, V]):
    """How a stream is written to a repartition topic."""

    name: str | None = None
    partitions: int | None = None
    partitioner: StreamPartitioner | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions is not None and self.partitions < 1:
            raise TopologyError(
                f"a repartition topic cannot have '{self.partitions}' partitions: give 1 or more"
            )

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Repartitioned[K, V]":
        """Return a repartition topic with these serdes."""
        return cls(key, value)

    @classmethod
    def as_(cls, name: str) -> "Repartitioned[Any, Any]":
        """Return a repartition topic with this name."""
        return Repartitioned(name=name)

    @classmethod
    def number_of_partitions(cls, count: int) -> "Repartitioned[Any, Any]":
        """Return a repartition topic of so many partitions."""
        return Repartitioned(partitions=count)

    @classmethod
    def stream_partitioner(cls, partitioner: StreamPartitioner) -> "Repartitioned[Any, Any]":
        """Return a repartition topic with a choice of partitions."""
        return Repartitioned(partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Repartitioned[K, V]":
        """Return the same with another choice of partitions."""
        return replace(self, partitioner=partitioner)

    def with_number_of_partitions(self, count: int) -> "Repartitioned[K, V]":
        """Return the same with a number of partitions."""
        return replace(self, partitions=count)


@dataclass(frozen=True)
class Joined(_WithSerdes[K, V]):
    """How a stream is joined with a table."""

    name: str | None = None
    grace: Duration | None = None
    """How long records wait for a versioned table to catch up."""

    @classmethod
    def with_(
        cls,
        key: Serde[K] | None,
        value: Serde[V] | None,
        other_value: Serde[Any] | None = None,
        name: str | None = None,
        grace: Duration | None = None,
    ) -> "Joined[K, V]":
        """Return a join with these serdes; the table's own is used for its values."""
        del other_value
        return cls(key, value, name, grace)

    @classmethod
    def as_(cls, name: str) -> "Joined[Any, Any]":
        """Return a join with this name."""
        return Joined(name=name)

    @classmethod
    def other_value_serde(cls, other_value: Serde[Any]) -> "Joined[Any, Any]":
        """Return a join like any other: the table's own serde is used for its values."""
        return Joined()

    def with_other_value_serde(self, other_value: Serde[Any]) -> "Joined[K, V]":
        """Return the same: the table's own serde is used for its values."""
        return self

    def with_grace_period(self, grace: Duration) -> "Joined[K, V]":
        """Return the same with records that wait."""
        return replace(self, grace=grace)

    @property
    def grace_ms(self) -> int | None:
        """The grace in milliseconds."""
        return None if self.grace is None else milliseconds(self.grace)


@dataclass(frozen=True)
class StreamJoined(_WithSerdes[Any, Any]):
    """How two streams are joined: serdes of their stores, names of operators and stores."""

    other_value: Serde[Any] | None = None
    name: str | None = None
    store_name: str | None = None
    logging_enabled: bool = True
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    stores: tuple[StoreBuilder | None, StoreBuilder | None] = (None, None)
    """The stores of this stream and of the other one, where they are supplied."""

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
        """Return a join with these serdes, or with these two stores."""
        if isinstance(key, StoreBuilder):
            return cls(stores=(key, value))
        return cls(key, value, other_value)

    def with_this_store_supplier(self, store: StoreBuilder) -> "StreamJoined":
        """Return the same with the store of this stream; it retains duplicates, for as long as the join needs."""
        return replace(self, stores=(store, self.stores[1]))

    def with_other_store_supplier(self, store: StoreBuilder) -> "StreamJoined":
        """Return the same with the store of the other stream."""
        return replace(self, stores=(self.stores[0], store))

    def with_dsl_store_suppliers(self, suppliers: object) -> "StreamJoined":
        """Return the same: where stores are kept is the engine's matter (KIP-954)."""
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "StreamJoined":
        """Return the same with changelogs, whose topics have these options as well."""
        return replace(self, logging_enabled=True, log_config=dict(config or {}))

    @classmethod
    def as_(cls, store_name: str) -> "StreamJoined":
        """Return a join whose stores have this name."""
        return cls(store_name=store_name)

    def with_other_value_serde(self, other_value: Serde[Any]) -> "StreamJoined":
        """Return the same with another serde of the other stream's values."""
        return replace(self, other_value=other_value)

    def with_store_name(self, store_name: str) -> "StreamJoined":
        """Return the same with other names of its stores."""
        return replace(self, store_name=store_name)

    def with_logging_disabled(self) -> "StreamJoined":
        """Return the same without changelogs."""
        return replace(self, logging_enabled=False)


@dataclass(frozen=True)
class TableJoined(SnakeCase):
    """How two tables are joined by a foreign key."""

    name: str | None = None
    partitioner: StreamPartitioner | None = None
    """How this table's keys are partitioned; answers find the way back by themselves."""
    other_partitioner: StreamPartitioner | None = None
    """How the other table's keys are partitioned, of topic, key, None and the number of partitions."""

    @classmethod
    def with_(
        cls, partitioner: StreamPartitioner | None, other_partitioner: StreamPartitioner | None
    ) -> "TableJoined":
        """Return a join of tables whose topics are partitioned otherwise than by the hash of the key (KIP-775)."""
        return cls(None, partitioner, other_partitioner)

    def with_partitioner(self, partitioner: StreamPartitioner) -> "TableJoined":
        """Return the same with how this table is partitioned."""
        return replace(self, partitioner=partitioner)

    def with_other_partitioner(self, partitioner: StreamPartitioner) -> "TableJoined":
        """Return the same with how the other table is partitioned."""
        return replace(self, other_partitioner=partitioner)

    def with_name(self, name: str) -> "TableJoined":
        """Return the same under a name."""
        return replace(self, name=name)

    @classmethod
    def as_(cls, name: str) -> "TableJoined":
        """Return a join with this name."""
        return cls(name)


@dataclass(frozen=True)
class Materialized(SnakeCase, Generic[K, V]):
    """How a table is kept: the store's name and serdes; `store` describes a store of another kind."""

    name: str | None = None
    key: Serde[K] | None = None
    value: Serde[V] | None = None
    retention: Duration | None = None
    logging_enabled: bool = True
    store: StoreBuilder | None = None
    caching_enabled: bool = True
    """Whether updates may wait for a commit, if the application has room for a cache."""
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options of its changelog's topic, over those that an application gives it."""

    def __post_init__(self) -> None:
        check_serdes(self.key, self.value)
        if self.name is not None:
            check_name(self.name, "a store")
        if self.retention is not None:
            milliseconds(self.retention)

    @classmethod
    def as_(cls, store: str | StoreBuilder) -> "Materialized[Any, Any]":
        """Return a table whose store has this name, or is this one."""
        if not isinstance(store, StoreBuilder):
            check_name(store, "a store")
            return Materialized(store)
        kept = store.retention_ms or None
        return Materialized(store.name, store.key, store.value, kept, store=store)

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Materialized[K, V]":
        """Return a table with these serdes."""
        return cls(None, key, value)

    def with_key_serde(self, key: Serde[K]) -> "Materialized[K, V]":
        """Return the same with another serde of keys."""
        return replace(self, key=key)

    def with_value_serde(self, value: Serde[V]) -> "Materialized[K, V]":
        """Return the same with another serde of values."""
        return replace(self, value=value)

    def with_retention(self, retention: Duration) -> "Materialized[K, V]":
        """Return the same with windows that are kept for another while."""
        return replace(self, retention=retention)

    def with_store_type(self, store_type: object) -> "Materialized[K, V]":
        """Return the same: where a store is kept is the engine's matter, not the table's (KIP-591)."""
        if self.store is not None:
            raise TopologyError("a store that is supplied has a type: leave with_store_type out")
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "Materialized[K, V]":
        """Return the same with a changelog, whose topic has these options as well."""
        return replace(self, logging_enabled=True, log_config=dict(config or {}))

    def with_logging_disabled(self) -> "Materialized[K, V]":
        """Return the same without a changelog."""
        return replace(self, logging_enabled=False)

    def with_caching_enabled(self) -> "Materialized[K, V]":
        """Return the same with updates that may wait for a commit."""
        return replace(self, caching_enabled=True)

    def with_caching_disabled(self) -> "Materialized[K, V]":
        """Return the same with updates that are all emitted."""
        return replace(self, caching_enabled=False)

    def builder(self, kind: str, default_name: str) -> StoreBuilder:
        """Describe the store of a table of a kind; TopologyError if it is to be kept in one of another shape."""
        told: dict[str, Any] = {
            "key": self.key,
            "value": self.value,
            "logging_enabled": self.logging_enabled,
            "log_config": self.log_config,
            "caching_enabled": self.caching_enabled,
        }
        if self.store is None:
            return StoreBuilder(self.name or default_name, kind, **told)
        supplied = self.store.kind
        if supplied not in (kind, *_SHAPES.get(kind, ())):
            raise TopologyError(
                f"store {self.store.name} is a {supplied} store; this table is kept in a {kind} store"
            )
        return replace(self.store, kind=supplied if supplied == "versioned" else kind, **told)


# A table's values have their time, whatever its store was supplied as.
_SHAPES = {
    "timestamped_key_value": ("key_value", "versioned"),
    "timestamped_window": ("window",),
}

Kept = Materialized[K, V] | str | None
"""How a table is kept, or just the name of its store."""

Option = Materialized[Any, Any] | Named | str | None
"""How a table is kept, and an operator's name: parameters are named for what a string means in their place."""


def asked(materialized: Option, named: Option) -> tuple[str | None, Materialized[Any, Any] | None]:
    """Return an operator's name and how its table is kept, if it is; told in either order, as in Kafka Streams."""
    if isinstance(materialized, Named) or isinstance(named, Materialized):
        materialized, named = named, materialized
    if isinstance(materialized, Named) or isinstance(named, Materialized):
        raise TypeError("an operator has one name, and its table is kept one way")
    kept = Materialized.as_(materialized) if isinstance(materialized, str) else materialized
    return name_of(named), of_kind(kept, Materialized, "how a table is kept")


@dataclass(frozen=True)
class Branched(SnakeCase, Generic[T]):
    """The name of a branch and what is done with it.

    `chain` takes the branch's stream and may give the stream that stands for it in the result;
    `consumer` takes it and leaves it out.
    """

    name: str | None = None
    chain: Callable[[T], T | None] | None = None
    consumer: Callable[[T], None] | None = None

    @classmethod
    def as_(cls, name: str) -> "Branched[Any]":
        """Return a branch with this name."""
        return Branched(name)

    @classmethod
    def with_function(
        cls, chain: Callable[[T], T | None], name: str | None = None
    ) -> "Branched[T]":
        """Return a branch that a function continues."""
        return cls(name, chain)

    @classmethod
    def with_consumer(cls, consumer: Callable[[T], None], name: str | None = None) -> "Branched[T]":
        """Return a branch that a function ends."""
        return cls(name, None, consumer)

    def with_name(self, name: str) -> "Branched[T]":
        """Return the same under a name."""
        return replace(self, name=name)


class AutoOffsetReset(SnakeCase):
    """Where a source starts that has no position yet (KIP-1106).

    Not done: `none` and `by_duration`; see the errors for what to do instead.
    """

    @staticmethod
    def earliest() -> str:
        """Start at the first record there is."""
        return "earliest"

    @staticmethod
    def latest() -> str:
        """Start at what comes next."""
        return "latest"

    @staticmethod
    def none() -> str:
        """Raise TopologyError: an application here finds its position in its checkpoint or has none."""
        raise TopologyError(
            "a source starts at AutoOffsetReset.earliest() or latest(): an application without a position is a "
            "new one. Whoever must not start anew names a state_dir that lasts"
        )

    @staticmethod
    def by_duration(duration: Duration) -> str:
        """Raise TopologyError: a source starts at one of two ends."""
        raise TopologyError(
            "a source starts at AutoOffsetReset.earliest() or latest(); from earliest(), a filter on the "
            "record's time leaves out what is older than the duration"
        )

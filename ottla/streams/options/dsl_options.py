"""Kafka Streams' configuration objects: immutable, all fields optional, set by keyword or `with_…`.

Every operator also takes the same settings as keyword arguments; an options object overrides them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar, cast, overload

from ottla.streams.expressions.arity import evaluated
from ottla.streams.expressions.functions import K, V
from ottla.streams.model.durations import Duration, check_whole, milliseconds
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.processor.api import StreamPartitioner, TimestampExtractor
from ottla.streams.serdes import Serde, check_serdes
from ottla.streams.stores.builders import StoreBuilder, StoreType

T = TypeVar("T")
OptionT = TypeVar("OptionT")


@dataclass(frozen=True)
class Named(SnakeCase):
    """The name of an operator; a plain string is equivalent."""

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "an operator")

    @classmethod
    def as_(cls, name: str) -> "Named":
        """Return a Named with this name."""
        return cls(name)

    def with_name(self, name: str) -> "Named":
        """Return a Named with another name."""
        return Named(name)


Name = Named | str | None


def name_of(named: "Named | str | None") -> str | None:
    """Return the name as a string. Raises TypeError if `named` is another option."""
    if named is None or isinstance(named, str):
        return named
    if not isinstance(named, Named):
        raise TypeError(f"an operator is named by a text or Named.as_(…), not by {_shown(named)}")
    return named.name


def _shown(option: Any) -> str:
    kind = type(option).__name__
    return f"a {kind}" if isinstance(option, SnakeCase) else repr(option)


def of_kind(option: OptionT | None, kind: type[OptionT], subject: str) -> OptionT | None:
    """Return the option. Raises TypeError if it is not a `kind`."""
    if option is not None and not isinstance(option, kind):
        name = kind.__name__
        raise TypeError(
            f"{subject} is configured with a {name}, such as {name}.as_(…), not {_shown(option)}"
        )
    return option


@dataclass(frozen=True)
class WithSerdes(SnakeCase, Generic[K, V]):
    """Base class of options with serdes; each also has a name."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None

    def __post_init__(self) -> None:
        check_serdes(self.key, self.value)

    def _changed(self, **changes: Any) -> Self:
        changed: Self = replace(cast(Any, self), **changes)
        return changed

    @classmethod
    def key_serde(cls, key: Serde[K]) -> Self:
        """Return options with a key serde only."""
        return cls(key)

    @classmethod
    def value_serde(cls, value: Serde[V]) -> Self:
        """Return options with a value serde only."""
        return cls(None, value)

    def with_key_serde(self, key: Serde[K]) -> Self:
        """Return a copy with another key serde."""
        return self._changed(key=key)

    def with_value_serde(self, value: Serde[V]) -> Self:
        """Return a copy with another value serde."""
        return self._changed(value=value)

    def with_name(self, name: str) -> Self:
        """Return a copy with another name."""
        return self._changed(name=name)


@dataclass(frozen=True)
class Consumed(WithSerdes[K, V]):
    """Options for reading a topic: serdes, timestamp extractor, offset reset policy and name."""

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
        """Return options with these serdes, or with only a timestamp extractor or an offset reset
        policy.
        """
        if isinstance(key, str):
            return Consumed(offset_reset=key)
        if (callable(key) or evaluated(key) is not None) and value is None:
            return Consumed(timestamp_extractor=key)
        return Consumed(key, value, timestamp_extractor, reset)

    @classmethod
    def as_(cls, name: str) -> "Consumed[Any, Any]":
        """Return options with a name."""
        return Consumed(name=name)

    def with_offset_reset_policy(self, reset: str) -> "Consumed[K, V]":
        """Return a copy with another offset reset policy: `earliest` or `latest`."""
        return replace(self, offset_reset=reset)

    def with_timestamp_extractor(self, extractor: TimestampExtractor) -> "Consumed[K, V]":
        """Return a copy with another timestamp extractor."""
        return replace(self, timestamp_extractor=extractor)


@dataclass(frozen=True)
class Produced(WithSerdes[K, V]):
    """Options for writing a topic: serdes, partitioner and name."""

    partitioner: StreamPartitioner | None = None
    name: str | None = None

    @classmethod
    def with_(
        cls,
        key: Serde[K] | None,
        value: Serde[V] | None,
        partitioner: StreamPartitioner | None = None,
    ) -> "Produced[K, V]":
        """Return options with these serdes and, optionally, a partitioner."""
        return cls(key, value, partitioner)

    @classmethod
    def as_(cls, name: str) -> "Produced[Any, Any]":
        """Return options with a name."""
        return Produced(name=name)

    @classmethod
    def stream_partitioner(cls, partitioner: StreamPartitioner) -> "Produced[Any, Any]":
        """Return options with a partitioner only."""
        return Produced(partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Produced[K, V]":
        """Return a copy with another partitioner."""
        return replace(self, partitioner=partitioner)


@dataclass(frozen=True)
class Printed(SnakeCase):
    """Options for printing records, to standard output or appended to a file."""

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
        """Append to a file."""
        if not path:
            raise TopologyError(f"records are printed to a file by its path, not to {path!r}")
        return cls(path)

    def with_label(self, label: str) -> "Printed":
        """Return a copy whose lines begin with `label` (default: the stream's name)."""
        return replace(self, label=label)

    def with_key_value_mapper(self, mapper: Callable[..., str]) -> "Printed":
        """Return a copy that prints the result of `mapper(key, value)`."""
        return replace(self, mapper=mapper)

    def with_name(self, name: str) -> "Printed":
        """Return a copy with another name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Grouped(WithSerdes[K, V]):
    """The name and serdes of a grouping, used for its repartition topic if it needs one."""

    name: str | None = None

    @overload
    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Grouped[K, V]": ...
    @overload
    @classmethod
    def with_(cls, key: str, value: Serde[K] | None, other: Serde[V] | None) -> "Grouped[K, V]": ...
    @classmethod
    def with_(cls, key: Any, value: Any, other: Any = None) -> "Grouped[Any, Any]":
        """Return options with these serdes, optionally with a name before them."""
        return Grouped(value, other, key) if isinstance(key, str) else Grouped(key, value)

    @classmethod
    def as_(cls, name: str) -> "Grouped[Any, Any]":
        """Return options with a name."""
        return Grouped(name=name)


@dataclass(frozen=True)
class Repartitioned(WithSerdes[K, V]):
    """Options for writing a stream to a repartition topic."""

    name: str | None = None
    partitions: int | None = None
    partitioner: StreamPartitioner | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions is not None:
            check_whole("the number of partitions of a repartition topic", self.partitions)
        if self.partitions is not None and self.partitions < 1:
            raise TopologyError(
                f"a repartition topic cannot have '{self.partitions}' partitions: use 1 or more"
            )

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Repartitioned[K, V]":
        """Return options with these serdes."""
        return cls(key, value)

    @classmethod
    def as_(cls, name: str) -> "Repartitioned[Any, Any]":
        """Return options with a name, which becomes part of the topic's name."""
        return Repartitioned(name=name)

    @classmethod
    def number_of_partitions(cls, count: int) -> "Repartitioned[Any, Any]":
        """Return options with a number of partitions."""
        return Repartitioned(partitions=count)

    @classmethod
    def stream_partitioner(cls, partitioner: StreamPartitioner) -> "Repartitioned[Any, Any]":
        """Return options with a partitioner."""
        return Repartitioned(partitioner=partitioner)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Repartitioned[K, V]":
        """Return a copy with another partitioner."""
        return replace(self, partitioner=partitioner)

    def with_number_of_partitions(self, count: int) -> "Repartitioned[K, V]":
        """Return a copy with another number of partitions."""
        return replace(self, partitions=count)


@dataclass(frozen=True)
class Materialized(SnakeCase, Generic[K, V]):
    """Options for storing a table: the store's name and serdes; `store` is the description of a
    store.
    """

    name: str | None = None
    key: Serde[K] | None = None
    value: Serde[V] | None = None
    retention: Duration | None = None
    logging_enabled: bool = True
    store: StoreBuilder | None = None
    caching_enabled: bool = True
    """If updates may be cached until the next commit; needs `statestore_cache_max_bytes` > 0."""
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options of the changelog topic; they override the application's."""
    store_type: StoreType | None = None
    """Where the local engine keeps the store; None: the application's `default_dsl_store`."""

    def __post_init__(self) -> None:
        check_serdes(self.key, self.value)
        if self.name is not None:
            check_name(self.name, "a store")
        if self.retention is not None:
            milliseconds(self.retention)

    @classmethod
    def as_(cls, store: str | StoreBuilder) -> "Materialized[Any, Any]":
        """Return options with a store's name, or with a supplied store."""
        if not isinstance(store, StoreBuilder):
            check_name(store, "a store")
            return Materialized(store)
        retention_ms = store.retention_ms or None
        return Materialized(store.name, store.key, store.value, retention_ms, store=store)

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Materialized[K, V]":
        """Return options with these serdes."""
        return cls(None, key, value)

    def with_key_serde(self, key: Serde[K]) -> "Materialized[K, V]":
        """Return a copy with another key serde."""
        return replace(self, key=key)

    def with_value_serde(self, value: Serde[V]) -> "Materialized[K, V]":
        """Return a copy with another value serde."""
        return replace(self, value=value)

    def with_retention(self, retention: Duration) -> "Materialized[K, V]":
        """Return a copy with another retention for windows and sessions."""
        return replace(self, retention=retention)

    def with_store_type(self, store_type: StoreType | str) -> "Materialized[K, V]":
        """Return a copy whose store the local engine keeps on disk or in memory (KIP-591).

        Raises TopologyError for another type, and if a store is supplied.
        """
        if self.store is not None:
            raise TopologyError("a supplied store already has a type: omit with_store_type")
        return replace(self, store_type=StoreType.of(store_type))

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> "Materialized[K, V]":
        """Return a copy with a changelog; `config` has additional options of its topic."""
        return replace(self, logging_enabled=True, log_config=dict(config or {}))

    def with_logging_disabled(self) -> "Materialized[K, V]":
        """Return a copy without a changelog."""
        return replace(self, logging_enabled=False)

    def with_caching_enabled(self) -> "Materialized[K, V]":
        """Return a copy whose updates may be cached until the next commit."""
        return replace(self, caching_enabled=True)

    def with_caching_disabled(self) -> "Materialized[K, V]":
        """Return a copy that forwards every update immediately."""
        return replace(self, caching_enabled=False)

    def builder(self, kind: str, default_name: str) -> StoreBuilder:
        """Return the description of the table's store. Raises TopologyError if a supplied store
        does not fit.
        """
        fields: dict[str, Any] = {
            "key": self.key,
            "value": self.value,
            "logging_enabled": self.logging_enabled,
            "log_config": self.log_config,
            "caching_enabled": self.caching_enabled,
        }
        if self.store is None:
            in_memory = None if self.store_type is None else self.store_type.in_memory
            return StoreBuilder(self.name or default_name, kind, **fields, in_memory=in_memory)
        supplied = self.store.kind
        if supplied not in (kind, *_SHAPES.get(kind, ())):
            raise TopologyError(
                f"store {self.store.name} is a {supplied} store; this table is kept in a {kind} store"
            )
        return replace(self.store, kind=supplied if supplied == "versioned" else kind, **fields)


# The stores of tables keep timestamps, even if the supplied store keeps none.
_SHAPES = {
    "timestamped_key_value": ("key_value", "versioned"),
    "timestamped_window": ("window",),
}

TableOptions = Materialized[K, V] | str | None
"""How a table is stored, or only the name of its store."""

Option = Materialized[Any, Any] | Named | str | None
"""A Materialized or a name. A string names the store or the operator, as the parameter's name says."""


def options_of(
    materialized: Option, named: Option
) -> tuple[str | None, Materialized[Any, Any] | None]:
    """Return an operator's name and Materialized, which may be given in either order as in Kafka."""
    if isinstance(materialized, Named) or isinstance(named, Materialized):
        materialized, named = named, materialized
    if isinstance(materialized, Named) or isinstance(named, Materialized):
        raise TypeError("an operator has one name, and its table is kept one way")
    options = Materialized.as_(materialized) if isinstance(materialized, str) else materialized
    return name_of(named), of_kind(options, Materialized, "how a table is kept")


@dataclass(frozen=True)
class Branched(SnakeCase, Generic[T]):
    """The name of a branch, and a function that processes it.

    `chain` takes the branch's stream and may return the stream that replaces it in the result.
    `consumer` takes the stream and removes it from the result.
    """

    name: str | None = None
    chain: Callable[[T], T | None] | None = None
    consumer: Callable[[T], None] | None = None

    @classmethod
    def as_(cls, name: str) -> "Branched[Any]":
        """Return options with a name."""
        return Branched(name)

    @classmethod
    def with_function(
        cls, chain: Callable[[T], T | None], name: str | None = None
    ) -> "Branched[T]":
        """Return options with a function whose result replaces the branch."""
        return cls(name, chain)

    @classmethod
    def with_consumer(cls, consumer: Callable[[T], None], name: str | None = None) -> "Branched[T]":
        """Return options with a function that consumes the branch."""
        return cls(name, None, consumer)

    def with_name(self, name: str) -> "Branched[T]":
        """Return a copy with another name."""
        return replace(self, name=name)


class AutoOffsetReset(SnakeCase):
    """The offset reset policies of a source without a committed position (KIP-1106).

    Not done: `none` and `by_duration`; their errors describe the alternatives.
    """

    @staticmethod
    def earliest() -> str:
        """Start at the earliest record."""
        return "earliest"

    @staticmethod
    def latest() -> str:
        """Start at the end: read only new records."""
        return "latest"

    @staticmethod
    def none() -> str:
        """Raise TopologyError: an application without a checkpoint needs a position to start at."""
        raise TopologyError(
            "AutoOffsetReset.none() is not supported: use earliest() or latest(). They apply only to an "
            "application without a checkpoint; set state_dir to a directory that is kept"
        )

    @staticmethod
    def by_duration(duration: Duration) -> str:
        """Raise TopologyError: a source starts at the earliest record or at the end."""
        raise TopologyError(
            "AutoOffsetReset.by_duration() is not supported: use earliest() or latest(). With earliest(), "
            "drop the records that are older than the duration with a filter on their timestamps"
        )

"""Kafka Streams' configuration objects: immutable, all fields optional, keyword arguments or `with_…`.

Every operator also takes the same things as keyword arguments; an object that is given as well wins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, cast

from ottla.streams.durations import Duration, milliseconds
from ottla.streams.functions import K, V
from ottla.streams.processor import StreamPartitioner, TimestampExtractor
from ottla.streams.serdes import Serde
from ottla.streams.spelling import SnakeCase
from ottla.streams.stores.builders import StoreBuilder

T = TypeVar("T")


@dataclass(frozen=True)
class Named(SnakeCase):
    """The name of an operator; a plain string does as well."""

    name: str

    @classmethod
    def as_(cls, name: str) -> "Named":
        """Return a name."""
        return cls(name)


Name = Named | str | None


def name_of(named: "Named | str | None") -> str | None:
    """Return the name itself."""
    return named.name if isinstance(named, Named) else named


@dataclass(frozen=True)
class _WithSerdes(SnakeCase, Generic[K, V]):
    """What options that name serdes share; each also has a name."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None

    def _changed(self, **changes: Any) -> Self:
        changed: Self = replace(cast(Any, self), **changes)
        return changed

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

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Consumed[K, V]":
        """Return how to read with these serdes."""
        return cls(key, value)

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

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Grouped[K, V]":
        """Return a group with these serdes."""
        return cls(key, value)

    @classmethod
    def as_(cls, name: str) -> "Grouped[Any, Any]":
        """Return a group with this name."""
        return Grouped(name=name)


@dataclass(frozen=True)
class Repartitioned(_WithSerdes[K, V]):
    """How a stream is written to a repartition topic."""

    name: str | None = None
    number_of_partitions: int | None = None
    partitioner: StreamPartitioner | None = None

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Repartitioned[K, V]":
        """Return a repartition topic with these serdes."""
        return cls(key, value)

    @classmethod
    def as_(cls, name: str) -> "Repartitioned[Any, Any]":
        """Return a repartition topic with this name."""
        return Repartitioned(name=name)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Repartitioned[K, V]":
        """Return the same with another choice of partitions."""
        return replace(self, partitioner=partitioner)

    def with_number_of_partitions(self, count: int) -> "Repartitioned[K, V]":
        """Return the same with a number of partitions."""
        return replace(self, number_of_partitions=count)


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

    @classmethod
    def with_(
        cls, key: Serde[Any] | None, value: Serde[Any] | None, other_value: Serde[Any] | None
    ) -> "StreamJoined":
        """Return a join with these serdes."""
        return cls(key, value, other_value)

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

    @classmethod
    def as_(cls, store: str | StoreBuilder) -> "Materialized[Any, Any]":
        """Return a table whose store has this name, or is this one."""
        if isinstance(store, StoreBuilder):
            return Materialized(store.name, store.key, store.value, store=store)
        return Materialized(store)

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
        """Describe the store of a table of a kind."""
        if self.store is not None:
            cached = self.caching_enabled
            return replace(self.store, key=self.key, value=self.value, caching_enabled=cached)
        return StoreBuilder(
            self.name or default_name,
            kind,
            self.key,
            self.value,
            logging_enabled=self.logging_enabled,
            caching_enabled=self.caching_enabled,
        )


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
    return name_of(named), kept


@dataclass(frozen=True)
class BufferConfig(SnakeCase):
    """How much may wait in a suppress buffer, and what happens when it is full."""

    max_records_count: int | None = None
    max_bytes_count: int | None = None
    fails_when_full: bool = False

    @classmethod
    def unbounded(cls) -> "BufferConfig":
        """Return a buffer without bounds."""
        return cls()

    @classmethod
    def max_records(cls, count: int) -> "BufferConfig":
        """Return a buffer of so many keys; a full one emits early."""
        return cls(max_records_count=count)

    @classmethod
    def max_bytes(cls, count: int) -> "BufferConfig":
        """Return a buffer of so many bytes; a full one emits early."""
        return cls(max_bytes_count=count)

    def with_max_records(self, count: int) -> "BufferConfig":
        """Return the same with a bound on keys."""
        return replace(self, max_records_count=count)

    def with_max_bytes(self, count: int) -> "BufferConfig":
        """Return the same with a bound on bytes."""
        return replace(self, max_bytes_count=count)

    def emit_early_when_full(self) -> "BufferConfig":
        """Return the same; a full one emits its first changes early."""
        return replace(self, fails_when_full=False)

    def shut_down_when_full(self) -> "BufferConfig":
        """Return the same; a full one ends the application."""
        return replace(self, fails_when_full=True)


@dataclass(frozen=True)
class Suppressed(SnakeCase):
    """Which changes of a table wait, and how long."""

    wait_ms: int | None
    """None: until the window closes."""
    buffer: BufferConfig = BufferConfig()
    name: str | None = None
    idle_timeout_ms: int | None = None
    """After how much wall-clock time without records the stream's time goes on with the wall clock."""
    on_late: "Callable[[Any], None] | None" = None
    """Told of changes of windows that were closed while nothing came."""

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig | None = None) -> "Suppressed":
        """Let only the last change of each window through, when nothing can change it any more."""
        kept = buffer or BufferConfig()
        bounded = kept.max_records_count is not None or kept.max_bytes_count is not None
        if bounded and not kept.fails_when_full:
            raise ValueError(
                "results are final only if none is emitted early: "
                "use an unbounded buffer or one that shuts down when full"
            )
        return cls(None, kept)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: BufferConfig) -> "Suppressed":
        """Let at most one change of each key through in a while of stream time."""
        return cls(milliseconds(wait), buffer)

    def with_idle_timeout(
        self, timeout: Duration, on_late: "Callable[[Any], None] | None" = None
    ) -> "Suppressed":
        """Return the same for streams that may fall silent: their time then goes on without records."""
        return replace(self, idle_timeout_ms=milliseconds(timeout), on_late=on_late)

    def with_name(self, name: str) -> "Suppressed":
        """Return the same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class EmitStrategy(SnakeCase):
    """When a windowed aggregation emits: at each update, or once when the window closes."""

    on_close: bool

    @classmethod
    def on_window_update(cls) -> "EmitStrategy":
        """Emit every update."""
        return cls(False)

    @classmethod
    def on_window_close(cls) -> "EmitStrategy":
        """Emit the result of a window once, when it closes."""
        return cls(True)


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

"""Kafka Streams' configuration objects: immutable, all fields optional, keyword arguments or `with_…`.

Every operator also takes the same things as keyword arguments; an object that is given as well wins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ottla.streams.columns import Column
from ottla.streams.durations import Duration, milliseconds
from ottla.streams.processor import StreamPartitioner, TimestampExtractor
from ottla.streams.serdes import Serde
from ottla.streams.spelling import SnakeCase
from ottla.streams.stores.builders import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")
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
R = TypeVar("R")
Of1Or2 = Callable[[Any], R] | Callable[[Any, Any], R] | Column
"""A function of the value, or of key and value; or a Column of both."""
Of2Or3 = Callable[[Any, Any], R] | Callable[[Any, Any, Any], R]
"""A function of two values, or of the key and two values."""


def name_of(named: "Named | str | None") -> str | None:
    """Return the name itself."""
    return named.name if isinstance(named, Named) else named


@dataclass(frozen=True)
class Consumed(SnakeCase, Generic[K, V]):
    """How a topic is read."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    name: str | None = None

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Consumed[K, V]":
        """Return how to read with these serdes."""
        return cls(key, value)

    def with_timestamp_extractor(self, extractor: TimestampExtractor) -> "Consumed[K, V]":
        """Return the same with another source of time."""
        return replace(self, timestamp_extractor=extractor)

    def with_name(self, name: str) -> "Consumed[K, V]":
        """Return the same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Produced(SnakeCase, Generic[K, V]):
    """How a topic is written."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None
    partitioner: StreamPartitioner | None = None
    name: str | None = None

    @classmethod
    def with_(cls, key: Serde[K] | None, value: Serde[V] | None) -> "Produced[K, V]":
        """Return how to write with these serdes."""
        return cls(key, value)

    def with_stream_partitioner(self, partitioner: StreamPartitioner) -> "Produced[K, V]":
        """Return the same with another choice of partitions."""
        return replace(self, partitioner=partitioner)

    def with_name(self, name: str) -> "Produced[K, V]":
        """Return the same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Grouped(SnakeCase, Generic[K, V]):
    """How a group is named and written to its repartition topic, if it needs one."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None
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
class Repartitioned(SnakeCase, Generic[K, V]):
    """How a stream is written to a repartition topic."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None
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

    def with_number_of_partitions(self, count: int) -> "Repartitioned[K, V]":
        """Return the same with a number of partitions."""
        return replace(self, number_of_partitions=count)


@dataclass(frozen=True)
class Joined(SnakeCase, Generic[K, V]):
    """How a stream is joined with a table."""

    key: Serde[K] | None = None
    value: Serde[V] | None = None
    name: str | None = None
    grace: Duration | None = None
    """How long records wait for a versioned table to catch up."""

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
class StreamJoined(SnakeCase):
    """How two streams are joined: serdes of their stores, names of operators and stores."""

    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
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

    def with_name(self, name: str) -> "StreamJoined":
        """Return the same under a name."""
        return replace(self, name=name)


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
    def asked(cls, kept: "Kept") -> "Materialized[Any, Any] | None":
        """Return what an operator was told; a string names the store."""
        return cls.as_(kept) if isinstance(kept, str) else kept

    @classmethod
    def of(cls, kept: "Kept") -> "Materialized[Any, Any]":
        """Return what an operator was told, or all defaults."""
        return cls.asked(kept) or cls()

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


Kept = Materialized[Any, Any] | str | None
"""How a table is kept, or just the name of its store."""


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

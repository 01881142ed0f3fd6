"""Interactive queries: the store to read (StoreQueryParameters), and query objects (KIP-796).

    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("eu"))
    app.query(request).get_only_partition_result().get_result()

A query runs against the store of each partition. The stores are views that are read from
changelogs, so that every instance serves all partitions, with committed data.

Not done: positions (`Position`, `PositionBound.at`, `getPosition`) and `getExecutionInfo`: a read
waits for the changelog's end only at the first access to a store. Custom `QueryableStoreType` and
`Query`: use functions of the view that `app.store` returns.
"""

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from ottla.streams.model.durations import Instant, instant_ms
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.records import ValueAndTimestamp
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.queries.store_views import StoreView
from ottla.streams.stores.iterators import KeyValueIterator
from ottla.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from ottla.streams.stores.session import SessionStore
from ottla.streams.stores.versioned import VersionedKeyValueStore
from ottla.streams.stores.window import WindowStore

R = TypeVar("R")

_FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class QueryableStoreType:
    """The type of the store to read, and whether its values are returned with timestamps."""

    name: str
    stores: tuple[type, ...]
    with_timestamps: bool = False


class QueryableStoreTypes(SnakeCase):
    """The types of stores that can be queried."""

    @staticmethod
    def key_value_store() -> QueryableStoreType:
        """Return the type of stores with one value per key."""
        return QueryableStoreType("key-value", (KeyValueStore,))

    @staticmethod
    def timestamped_key_value_store() -> QueryableStoreType:
        """Return the type of stores with one value and its timestamp per key, as tables have."""
        return QueryableStoreType("timestamped key-value", (TimestampedKeyValueStore,), True)

    @staticmethod
    def window_store() -> QueryableStoreType:
        """Return the type of stores with one value per key and window."""
        return QueryableStoreType("window", (WindowStore,))

    @staticmethod
    def timestamped_window_store() -> QueryableStoreType:
        """Return the type of stores with one value and its timestamp per key and window."""
        return QueryableStoreType("timestamped window", (WindowStore,), True)

    @staticmethod
    def session_store() -> QueryableStoreType:
        """Return the type of stores with one value per key and session."""
        return QueryableStoreType("session", (SessionStore,))


@dataclass(frozen=True)
class StoreQueryParameters(SnakeCase):
    """The store to read; instead of this object, a name alone can be passed."""

    store_name: str
    queryable_store_type: QueryableStoreType
    partition: int | None = None
    stale_stores_enabled: bool = False

    @classmethod
    def from_name_and_type(cls, name: str, kind: QueryableStoreType) -> "StoreQueryParameters":
        """Return parameters for a store of this name and type."""
        return cls(name, kind)

    def with_partition(self, partition: int) -> "StoreQueryParameters":
        """Return these parameters for one partition only."""
        return replace(self, partition=partition)

    def enable_stale_stores(self) -> "StoreQueryParameters":
        """Return these parameters with reads of standbys, if `store` is called with is_local.

        Otherwise they have no effect: all instances read the same committed data.
        """
        return replace(self, stale_stores_enabled=True)

    def narrow(self, view: StoreView) -> StoreView:
        """Return the requested part of a view; StreamsError for another type or an unknown
        partition.
        """
        kind = self.queryable_store_type
        if not all(isinstance(store, kind.stores) for store in view.stores):
            raise StreamsError(f"store {self.store_name} is not a {kind.name} store")
        if self.partition is None:
            return view
        if self.partition not in view.partitions:
            raise StreamsError(f"store {self.store_name} has no partition {self.partition}")
        return view.of_partition(self.partition)


class FailureReason(enum.Enum):
    """The reason why a query of a partition failed."""

    UNKNOWN_QUERY_TYPE = "the store does not support this query"
    DOES_NOT_EXIST = "the partition does not exist"


@dataclass(frozen=True)
class QueryResult(SnakeCase, Generic[R]):
    """The result of a query for one partition."""

    result: R | None = None
    failure_reason: FailureReason | None = None
    failure_message: str | None = None

    def is_success(self) -> bool:
        """Return True if the query succeeded; a result of None is a success, too."""
        return self.failure_reason is None

    def is_failure(self) -> bool:
        """Return True if the query failed."""
        return self.failure_reason is not None

    def get_result(self) -> R | None:
        """Return the result; StreamsError if the query failed."""
        if self.failure_reason is not None:
            raise StreamsError(f"the query failed: {self.failure_message}")
        return self.result

    def get_failure_reason(self) -> FailureReason | None:
        """Return the reason of the failure."""
        return self.failure_reason

    def get_failure_message(self) -> str | None:
        """Return the message of the failure."""
        return self.failure_message


@dataclass(frozen=True)
class StateQueryResult(SnakeCase, Generic[R]):
    """The results of all partitions, or the one result of a global table."""

    partition_results: Mapping[int, QueryResult[R]]
    global_result: QueryResult[R] | None = None

    def get_partition_results(self) -> Mapping[int, QueryResult[R]]:
        """Return the results by partition."""
        return self.partition_results

    def get_global_result(self) -> QueryResult[R] | None:
        """Return the result of a global store."""
        return self.global_result

    def get_only_partition_result(self) -> QueryResult[R] | None:
        """Return the only result that is not None; None if all are; ValueError if there are
        several.
        """
        results = [
            partition_result
            for partition_result in self.partition_results.values()
            if partition_result.result is not None
        ]
        if len(results) > 1:
            raise ValueError(
                f"{len(results)} partitions have a result; call get_partition_results()"
            )
        return results[0] if results else None


class PositionBound(SnakeCase):
    """The minimum position of a store; only the unbounded one is supported."""

    @classmethod
    def unbounded(cls) -> "PositionBound":
        """Return the bound that every position satisfies."""
        return cls()


class Query(SnakeCase, Generic[R]):
    """A query for a store; `stores` are the store types that support it."""

    stores: ClassVar[tuple[type, ...]] = ()

    def fits(self, store: Any) -> bool:
        """Return True if a store supports this query."""
        return isinstance(store, self.stores)

    def ask(self, store: Any) -> R:
        """Return the result from the store of one partition."""
        raise TypeError(f"{type(self).__name__} must define ask")


@dataclass(frozen=True)
class StateQueryRequest(SnakeCase, Generic[R]):
    """A query, the name of its store, and its partitions (None: all)."""

    store_name: str
    query: Query[R]
    partitions: frozenset[int] | None = None

    @staticmethod
    def in_store(name: str) -> "InStore":
        """Set the store's name; `with_query` completes the request."""
        return InStore(name)

    def with_partitions(self, partitions: Collection[int]) -> "StateQueryRequest[R]":
        """Return this request for some partitions."""
        return replace(self, partitions=frozenset(partitions))

    def with_all_partitions(self) -> "StateQueryRequest[R]":
        """Return this request for all partitions."""
        return replace(self, partitions=None)

    def with_position_bound(self, bound: PositionBound) -> "StateQueryRequest[R]":
        """Return this request unchanged: position bounds have no effect."""
        return self

    def enable_execution_info(self) -> "StateQueryRequest[R]":
        """Return this request unchanged: there is no execution info."""
        return self

    def require_active(self) -> "StateQueryRequest[R]":
        """Return this request unchanged: every instance reads the active one's committed data."""
        return self

    def answer(self, view: StoreView, *, is_global: bool = False) -> StateQueryResult[R]:
        """Run the query on the stores of a view."""
        if is_global:
            return StateQueryResult({}, self._of(view, 0))
        partitions = view.partitions if self.partitions is None else sorted(self.partitions)
        return StateQueryResult({partition: self._of(view, partition) for partition in partitions})

    def _of(self, view: StoreView, partition: int) -> QueryResult[R]:
        if partition not in view.partitions:
            message = f"store {self.store_name} has no partition {partition}"
            return QueryResult(None, FailureReason.DOES_NOT_EXIST, message)
        if not self.query.fits(view.stores[partition]):
            kind = type(view.stores[partition]).__name__
            message = (
                f"{self.store_name} is a {kind}, which does not support {type(self.query).__name__}"
            )
            return QueryResult(None, FailureReason.UNKNOWN_QUERY_TYPE, message)
        return QueryResult(view.ask(partition, self.query.ask))


@dataclass(frozen=True)
class InStore(SnakeCase):
    """A request that has a store, but no query yet."""

    store_name: str

    def with_query(self, query: Query[R]) -> StateQueryRequest[R]:
        """Return the request with its query."""
        return StateQueryRequest(self.store_name, query)


def _plain(entry: Any) -> Any:
    return entry.value if isinstance(entry, ValueAndTimestamp) else entry


def _kept(entries: Any, show: Callable[[Any], Any]) -> KeyValueIterator[Any, Any]:
    """Read the entries now: the store may change before the caller iterates over them."""
    return KeyValueIterator([(key, show(value)) for key, value in entries])


@dataclass(frozen=True)
class KeyQuery(Query[Any]):
    """A query for the value of a key."""

    key: Any
    stores: ClassVar[tuple[type, ...]] = (KeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "KeyQuery":
        """Query a key."""
        return cls(key)

    def skip_cache(self) -> "KeyQuery":
        """Return this query unchanged: cached updates are never visible."""
        return self

    def ask(self, store: Any) -> Any:
        """Return the value, or None if the key has no value."""
        return _plain(store.get(self.key))


@dataclass(frozen=True)
class TimestampedKeyQuery(KeyQuery):
    """A query for the value of a key with its timestamp."""

    stores: ClassVar[tuple[type, ...]] = (TimestampedKeyValueStore,)

    def ask(self, store: Any) -> Any:
        """Return a ValueAndTimestamp, or None if the key has no value."""
        return store.get(self.key)


class ResultOrder(enum.Enum):
    """The order of a result."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True)
class RangeQuery(Query[Any]):
    """A query for a range of keys, both bounds inclusive; None means unbounded."""

    lower_bound: Any = None
    upper_bound: Any = None
    result_order: ResultOrder = ResultOrder.ANY
    stores: ClassVar[tuple[type, ...]] = (KeyValueStore,)

    @classmethod
    def with_range(cls, lower: Any, upper: Any) -> "RangeQuery":
        """Query the keys between two bounds."""
        return cls(lower, upper)

    @classmethod
    def with_lower_bound(cls, lower: Any) -> "RangeQuery":
        """Query the keys from a lower bound."""
        return cls(lower)

    @classmethod
    def with_upper_bound(cls, upper: Any) -> "RangeQuery":
        """Query the keys up to an upper bound."""
        return cls(None, upper)

    @classmethod
    def with_no_bounds(cls) -> "RangeQuery":
        """Query all keys."""
        return cls()

    def with_ascending_keys(self) -> "RangeQuery":
        """Return this query in ascending order of the serialized keys."""
        return replace(self, result_order=ResultOrder.ASCENDING)

    def with_descending_keys(self) -> "RangeQuery":
        """Return this query in descending order of the serialized keys."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def _entries(self, store: Any) -> Any:
        is_reverse = self.result_order is ResultOrder.DESCENDING
        walk = store.reverse_range if is_reverse else store.range
        return walk(self.lower_bound, self.upper_bound)

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of keys and values."""
        return _kept(self._entries(store), _plain)


@dataclass(frozen=True)
class TimestampedRangeQuery(RangeQuery):
    """A query for a range of keys with the timestamps of their values."""

    stores: ClassVar[tuple[type, ...]] = (TimestampedKeyValueStore,)

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of keys and ValueAndTimestamps."""
        return _kept(self._entries(store), lambda value: value)


@dataclass(frozen=True)
class WindowKeyQuery(Query[Any]):
    """A query for the windows of a key that start between two times, both inclusive."""

    key: Any
    time_from: int
    time_to: int
    stores: ClassVar[tuple[type, ...]] = (WindowStore,)

    @classmethod
    def with_key_and_window_start_range(
        cls, key: Any, time_from: Instant, time_to: Instant
    ) -> "WindowKeyQuery":
        """Query a key for a range of window starts (ms, or datetimes)."""
        return cls(key, instant_ms(time_from), instant_ms(time_to))

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of window starts (ms) and values; a table's values have
        timestamps.
        """
        return _kept(store.fetch(self.key, self.time_from, self.time_to), lambda value: value)


@dataclass(frozen=True)
class WindowRangeQuery(Query[Any]):
    """A query for the sessions of a key, or for the windows of all keys that start in a time range."""

    key: Any = None
    times: tuple[int, int] | None = None

    @classmethod
    def with_key(cls, key: Any) -> "WindowRangeQuery":
        """Query all sessions of a key."""
        return cls(key)

    @classmethod
    def with_window_start_range(cls, time_from: Instant, time_to: Instant) -> "WindowRangeQuery":
        """Query the windows of all keys in a range of starts (ms, or datetimes), both inclusive."""
        return cls(None, (instant_ms(time_from), instant_ms(time_to)))

    def fits(self, store: Any) -> bool:
        """Return True if a store supports this query: sessions by key, windows by time."""
        return isinstance(store, SessionStore if self.times is None else WindowStore)

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of windowed keys and values."""
        result = store.fetch(self.key) if self.times is None else store.fetch_all(*self.times)
        return _kept(result, lambda value: value)


@dataclass(frozen=True)
class VersionedKeyQuery(Query[Any]):
    """A query for the latest value of a key, or its value at a time (KIP-960)."""

    key: Any
    as_of_timestamp: int | None = None
    stores: ClassVar[tuple[type, ...]] = (VersionedKeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "VersionedKeyQuery":
        """Query a key."""
        return cls(key)

    def as_of(self, timestamp: Instant) -> "VersionedKeyQuery":
        """Return this query for the value at a time (ms, or a datetime)."""
        return replace(self, as_of_timestamp=instant_ms(timestamp))

    def ask(self, store: Any) -> Any:
        """Return a VersionedRecord, or None if the key has no value."""
        return store.get(self.key, self.as_of_timestamp)


@dataclass(frozen=True)
class MultiVersionedKeyQuery(Query[Any]):
    """A query for all values of a key that were valid between two times, latest first (KIP-968)."""

    key: Any
    times: tuple[int, int] = field(default=(0, _FOREVER))
    result_order: ResultOrder = ResultOrder.ANY
    stores: ClassVar[tuple[type, ...]] = (VersionedKeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "MultiVersionedKeyQuery":
        """Query a key."""
        return cls(key)

    def from_time(self, time_from: Instant) -> "MultiVersionedKeyQuery":
        """Return this query for values that were valid at this time or later (ms, or a datetime)."""
        return replace(self, times=(instant_ms(time_from), self.times[1]))

    def to_time(self, time_to: Instant) -> "MultiVersionedKeyQuery":
        """Return this query for values that were valid at this time or earlier."""
        return replace(self, times=(self.times[0], instant_ms(time_to)))

    def with_ascending_timestamps(self) -> "MultiVersionedKeyQuery":
        """Return this query with the earliest value first."""
        return replace(self, result_order=ResultOrder.ASCENDING)

    def with_descending_timestamps(self) -> "MultiVersionedKeyQuery":
        """Return this query with the latest value first."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def ask(self, store: Any) -> Any:
        """Return an iterator of VersionedRecords."""
        results = list(store.versions(self.key, *self.times))
        return iter(results[::-1] if self.result_order is ResultOrder.ASCENDING else results)

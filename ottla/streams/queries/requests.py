"""Interactive queries: which store is asked for (StoreQueryParameters), and queries that are values (KIP-796).

    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("eu"))
    app.query(request).get_only_partition_result().get_result()

A query is put to the store of each partition. What they answer is read from changelogs, so that every instance
answers for all partitions, with what was committed.

Not done: positions (`Position`, `PositionBound.at`, `getPosition`) and `getExecutionInfo`: a read waits for the changelog's end only when a
store is first asked. `QueryableStoreType` and `Query` of one's own: functions of what `app.store` returns.
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
    """What kind of store is asked for, and whether its values come with their times."""

    name: str
    stores: tuple[type, ...]
    with_timestamps: bool = False


class QueryableStoreTypes(SnakeCase):
    """The kinds of stores that can be asked for."""

    @staticmethod
    def key_value_store() -> QueryableStoreType:
        """Return the kind of one value a key."""
        return QueryableStoreType("key-value", (KeyValueStore,))

    @staticmethod
    def timestamped_key_value_store() -> QueryableStoreType:
        """Return the kind of one value and its time a key, as tables have it."""
        return QueryableStoreType("timestamped key-value", (TimestampedKeyValueStore,), True)

    @staticmethod
    def window_store() -> QueryableStoreType:
        """Return the kind of one value a key and window."""
        return QueryableStoreType("window", (WindowStore,))

    @staticmethod
    def timestamped_window_store() -> QueryableStoreType:
        """Return the kind of one value and its time a key and window."""
        return QueryableStoreType("timestamped window", (WindowStore,), True)

    @staticmethod
    def session_store() -> QueryableStoreType:
        """Return the kind of one value a key and session."""
        return QueryableStoreType("session", (SessionStore,))


@dataclass(frozen=True)
class StoreQueryParameters(SnakeCase):
    """Which store is asked for; a name alone does as well."""

    store_name: str
    queryable_store_type: QueryableStoreType
    partition: int | None = None

    @classmethod
    def from_name_and_type(cls, name: str, kind: QueryableStoreType) -> "StoreQueryParameters":
        """Return what asks for a store by its name and kind."""
        return cls(name, kind)

    def with_partition(self, partition: int) -> "StoreQueryParameters":
        """Return the same for one partition only."""
        return replace(self, partition=partition)

    def enable_stale_stores(self) -> "StoreQueryParameters":
        """Return the same: standing by or active, an instance answers with what was committed."""
        return self

    def narrow(self, view: StoreView) -> StoreView:
        """Return what of a store is asked for; StreamsError if it is of another kind, or has no such partition."""
        kind = self.queryable_store_type
        if not all(isinstance(each, kind.stores) for each in view.stores):
            raise StreamsError(f"store {self.store_name} is no {kind.name} store")
        if self.partition is None:
            return view
        if self.partition not in view.partitions:
            raise StreamsError(f"store {self.store_name} has no partition {self.partition}")
        return view.of_partition(self.partition)


class FailureReason(enum.Enum):
    """Why a query of a partition has no result."""

    UNKNOWN_QUERY_TYPE = "the store does not answer queries of this kind"
    DOES_NOT_EXIST = "there is no such partition"


@dataclass(frozen=True)
class QueryResult(SnakeCase, Generic[R]):
    """What a partition answered."""

    result: R | None = None
    failure_reason: FailureReason | None = None
    failure_message: str | None = None

    def is_success(self) -> bool:
        """Return whether the query was answered; None is an answer, too."""
        return self.failure_reason is None

    def is_failure(self) -> bool:
        """Return whether it was not."""
        return self.failure_reason is not None

    def get_result(self) -> R | None:
        """Return the answer; StreamsError if there is none."""
        if self.failure_reason is not None:
            raise StreamsError(f"the query was not answered: {self.failure_message}")
        return self.result

    def get_failure_reason(self) -> FailureReason | None:
        """Return why there is no answer."""
        return self.failure_reason

    def get_failure_message(self) -> str | None:
        """Return the same in words."""
        return self.failure_message


@dataclass(frozen=True)
class StateQueryResult(SnakeCase, Generic[R]):
    """What all partitions answered, or the one store of a global table."""

    partition_results: Mapping[int, QueryResult[R]]
    global_result: QueryResult[R] | None = None

    def get_partition_results(self) -> Mapping[int, QueryResult[R]]:
        """Return the answers by partition."""
        return self.partition_results

    def get_global_result(self) -> QueryResult[R] | None:
        """Return the answer of a global store."""
        return self.global_result

    def get_only_partition_result(self) -> QueryResult[R] | None:
        """Return the one answer that is not None; None if all are; ValueError if several are not."""
        found = [each for each in self.partition_results.values() if each.result is not None]
        if len(found) > 1:
            raise ValueError(f"{len(found)} partitions have a result; ask get_partition_results()")
        return found[0] if found else None


class PositionBound(SnakeCase):
    """How far a store must be: nothing is demanded of it here."""

    @classmethod
    def unbounded(cls) -> "PositionBound":
        """Demand nothing."""
        return cls()


class Query(SnakeCase, Generic[R]):
    """A question to a store; `stores` are the kinds that answer it."""

    stores: ClassVar[tuple[type, ...]] = ()

    def fits(self, store: Any) -> bool:
        """Return whether a store answers it."""
        return isinstance(store, self.stores)

    def ask(self, store: Any) -> R:
        """Return the answer of the store of one partition."""
        raise TypeError(f"{type(self).__name__} does not say how it asks")


@dataclass(frozen=True)
class StateQueryRequest(SnakeCase, Generic[R]):
    """A query, the store that it is for, and of which partitions (None: all)."""

    store_name: str
    query: Query[R]
    partitions: frozenset[int] | None = None

    @staticmethod
    def in_store(name: str) -> "InStore":
        """Name the store; `with_query` completes the request."""
        return InStore(name)

    def with_partitions(self, partitions: Collection[int]) -> "StateQueryRequest[R]":
        """Return the same for some partitions."""
        return replace(self, partitions=frozenset(partitions))

    def with_all_partitions(self) -> "StateQueryRequest[R]":
        """Return the same for all partitions."""
        return replace(self, partitions=None)

    def with_position_bound(self, bound: PositionBound) -> "StateQueryRequest[R]":
        """Return the same: nothing can be demanded of a store."""
        return self

    def enable_execution_info(self) -> "StateQueryRequest[R]":
        """Return the same: there is nothing to tell."""
        return self

    def require_active(self) -> "StateQueryRequest[R]":
        """Return the same: every instance answers with what the active one committed."""
        return self

    def answer(self, view: StoreView, *, is_global: bool = False) -> StateQueryResult[R]:
        """Ask the stores of a view."""
        if is_global:
            return StateQueryResult({}, self._of(view, 0))
        wanted = view.partitions if self.partitions is None else sorted(self.partitions)
        return StateQueryResult({each: self._of(view, each) for each in wanted})

    def _of(self, view: StoreView, partition: int) -> QueryResult[R]:
        if partition not in view.partitions:
            message = f"store {self.store_name} has no partition {partition}"
            return QueryResult(None, FailureReason.DOES_NOT_EXIST, message)
        if not self.query.fits(view.stores[partition]):
            kind = type(view.stores[partition]).__name__
            message = (
                f"{self.store_name} is a {kind}, which does not answer {type(self.query).__name__}"
            )
            return QueryResult(None, FailureReason.UNKNOWN_QUERY_TYPE, message)
        return QueryResult(view.ask(partition, self.query.ask))


@dataclass(frozen=True)
class InStore(SnakeCase):
    """The store of a request to be."""

    store_name: str

    def with_query(self, query: Query[R]) -> StateQueryRequest[R]:
        """Return the request."""
        return StateQueryRequest(self.store_name, query)


def _plain(entry: Any) -> Any:
    return entry.value if isinstance(entry, ValueAndTimestamp) else entry


def _kept(entries: Any, show: Callable[[Any], Any]) -> KeyValueIterator[Any, Any]:
    """Read what is there now: the store may change before it is walked."""
    return KeyValueIterator([(key, show(value)) for key, value in entries])


@dataclass(frozen=True)
class KeyQuery(Query[Any]):
    """Asks for the value of a key."""

    key: Any
    stores: ClassVar[tuple[type, ...]] = (KeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "KeyQuery":
        """Ask for a key."""
        return cls(key)

    def skip_cache(self) -> "KeyQuery":
        """Return the same: what waits in a cache is not seen anyway."""
        return self

    def ask(self, store: Any) -> Any:
        """Return the value; None if there is none."""
        return _plain(store.get(self.key))


@dataclass(frozen=True)
class TimestampedKeyQuery(KeyQuery):
    """Asks for the value of a key with its time."""

    stores: ClassVar[tuple[type, ...]] = (TimestampedKeyValueStore,)

    def ask(self, store: Any) -> Any:
        """Return a ValueAndTimestamp; None if there is none."""
        return store.get(self.key)


class ResultOrder(enum.Enum):
    """The order of a result."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True)
class RangeQuery(Query[Any]):
    """Asks for the values of keys between two, both included; None is no bound."""

    lower_bound: Any = None
    upper_bound: Any = None
    result_order: ResultOrder = ResultOrder.ANY
    stores: ClassVar[tuple[type, ...]] = (KeyValueStore,)

    @classmethod
    def with_range(cls, lower: Any, upper: Any) -> "RangeQuery":
        """Ask for keys from one to another."""
        return cls(lower, upper)

    @classmethod
    def with_lower_bound(cls, lower: Any) -> "RangeQuery":
        """Ask for keys from one on."""
        return cls(lower)

    @classmethod
    def with_upper_bound(cls, upper: Any) -> "RangeQuery":
        """Ask for keys up to one."""
        return cls(None, upper)

    @classmethod
    def with_no_bounds(cls) -> "RangeQuery":
        """Ask for all keys."""
        return cls()

    def with_ascending_keys(self) -> "RangeQuery":
        """Return the same from the first key to the last, in the order of their bytes."""
        return replace(self, result_order=ResultOrder.ASCENDING)

    def with_descending_keys(self) -> "RangeQuery":
        """Return the same from the last key to the first."""
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
    """Asks for the values of keys between two, with their times."""

    stores: ClassVar[tuple[type, ...]] = (TimestampedKeyValueStore,)

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of keys and ValueAndTimestamps."""
        return _kept(self._entries(store), lambda value: value)


@dataclass(frozen=True)
class WindowKeyQuery(Query[Any]):
    """Asks for the windows of a key that start within two times, both included."""

    key: Any
    time_from: int
    time_to: int
    stores: ClassVar[tuple[type, ...]] = (WindowStore,)

    @classmethod
    def with_key_and_window_start_range(
        cls, key: Any, time_from: Instant, time_to: Instant
    ) -> "WindowKeyQuery":
        """Ask for a key and times (ms, or datetimes)."""
        return cls(key, instant_ms(time_from), instant_ms(time_to))

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of starts (ms) and what is stored: of a table values with their times."""
        return _kept(store.fetch(self.key, self.time_from, self.time_to), lambda value: value)


@dataclass(frozen=True)
class WindowRangeQuery(Query[Any]):
    """Asks for the sessions of a key, or for the windows of all keys that start within two times."""

    key: Any = None
    times: tuple[int, int] | None = None

    @classmethod
    def with_key(cls, key: Any) -> "WindowRangeQuery":
        """Ask for all sessions of a key."""
        return cls(key)

    @classmethod
    def with_window_start_range(cls, time_from: Instant, time_to: Instant) -> "WindowRangeQuery":
        """Ask for the windows of all keys by their start (ms, or datetimes), ends included."""
        return cls(None, (instant_ms(time_from), instant_ms(time_to)))

    def fits(self, store: Any) -> bool:
        """Return whether a store answers it: sessions are asked for by key, windows by time."""
        return isinstance(store, SessionStore if self.times is None else WindowStore)

    def ask(self, store: Any) -> Any:
        """Return a KeyValueIterator of windowed keys and what is stored."""
        found = store.fetch(self.key) if self.times is None else store.fetch_all(*self.times)
        return _kept(found, lambda value: value)


@dataclass(frozen=True)
class VersionedKeyQuery(Query[Any]):
    """Asks for the value of a key now, or at a time (KIP-960)."""

    key: Any
    as_of_timestamp: int | None = None
    stores: ClassVar[tuple[type, ...]] = (VersionedKeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "VersionedKeyQuery":
        """Ask for a key."""
        return cls(key)

    def as_of(self, timestamp: Instant) -> "VersionedKeyQuery":
        """Return the same for what the key had at a time (ms, or a datetime)."""
        return replace(self, as_of_timestamp=instant_ms(timestamp))

    def ask(self, store: Any) -> Any:
        """Return a VersionedRecord; None if there is none."""
        return store.get(self.key, self.as_of_timestamp)


@dataclass(frozen=True)
class MultiVersionedKeyQuery(Query[Any]):
    """Asks for all values that a key had between two times, the latest first (KIP-968)."""

    key: Any
    times: tuple[int, int] = field(default=(0, _FOREVER))
    result_order: ResultOrder = ResultOrder.ANY
    stores: ClassVar[tuple[type, ...]] = (VersionedKeyValueStore,)

    @classmethod
    def with_key(cls, key: Any) -> "MultiVersionedKeyQuery":
        """Ask for a key."""
        return cls(key)

    def from_time(self, time_from: Instant) -> "MultiVersionedKeyQuery":
        """Return the same for what was there at this time or later (ms, or a datetime)."""
        return replace(self, times=(instant_ms(time_from), self.times[1]))

    def to_time(self, time_to: Instant) -> "MultiVersionedKeyQuery":
        """Return the same for what was there at this time or before."""
        return replace(self, times=(self.times[0], instant_ms(time_to)))

    def with_ascending_timestamps(self) -> "MultiVersionedKeyQuery":
        """Return the same, the earliest first."""
        return replace(self, result_order=ResultOrder.ASCENDING)

    def with_descending_timestamps(self) -> "MultiVersionedKeyQuery":
        """Return the same, the latest first."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def ask(self, store: Any) -> Any:
        """Return an iterator of VersionedRecords."""
        found = list(store.versions(self.key, *self.times))
        return iter(found[::-1] if self.result_order is ResultOrder.ASCENDING else found)

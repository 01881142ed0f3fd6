"""Read-only views of stores, for queries while the application runs, built from the changelog.

A view contains one store per task, as Kafka's composite read-only stores do: a key is looked up in
each, and iterations visit one store after the other, each in the order of its keys. Reads and
updates exclude each other for less than a millisecond.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ottla.streams.model.durations import Instant
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.records import NO_TIMESTAMP, ValueAndTimestamp
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import DefaultSerdes, Serde
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.stores.iterators import KeyValueIterator

# The number of changes that are applied at once; a reader waits no longer than that.
_STEP = 200
_FOREVER = (1 << 63) - 1

Change = tuple[int, bytes, bytes | None, int]
"""Partition, key, value and timestamp of a changelog record."""


Ask = Callable[[Any], Iterable[tuple[Any, Any]]]
T = TypeVar("T")


class StoreView(SnakeCase):
    """The base of all views; `with_timestamps` returns values as ValueAndTimestamp if the store has
    them.
    """

    def __init__(self, name: str, stores: Sequence[Any], *, with_timestamps: bool = False) -> None:
        self.name = name
        self.stores = stores
        """The store of each partition."""
        self._lock = threading.Lock()
        self._with_timestamps = with_timestamps

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply changes in their order."""
        for start in range(0, len(changes), _STEP):
            with self._lock:
                for partition, key, value, timestamp in changes[start : start + _STEP]:
                    self.stores[partition].restore(key, value, timestamp)

    def update(self, change: Callable[[], None]) -> None:
        """Run a function that changes the stores while no reader is active."""
        with self._lock:
            change()

    def _plain(self, value: Any) -> Any:
        is_timed = isinstance(value, ValueAndTimestamp) and not self._with_timestamps
        return value.value if is_timed else value

    def _first(self, ask: Callable[[Any], Any]) -> Any:
        with self._lock:
            result = (ask(store) for store in self.stores)
            return self._plain(
                next(
                    (answer_of_store for answer_of_store in result if answer_of_store is not None),
                    None,
                )
            )

    def _walk(self, ask: Ask) -> KeyValueIterator[Any, Any]:
        """Return the entries that an iteration over all stores finds now."""
        with self._lock:
            results = [entry for store in self.stores for entry in ask(store)]
        return KeyValueIterator((key, self._plain(value)) for key, value in results)

    def of_partition(self, partition: int) -> "StoreView":
        """Return a view of one partition."""
        kind, timed = type(self), self._with_timestamps
        view = kind(self.name, [self.stores[partition]], with_timestamps=timed)
        view._lock = self._lock
        return view

    @property
    def partitions(self) -> range:
        """The partitions in this view, each with a store of its own."""
        return range(len(self.stores))

    def ask(self, partition: int, question: Callable[[Any], T]) -> T:
        """Return the result of a function of one partition's store, while updates are blocked."""
        with self._lock:
            return question(self.stores[partition])


class KeyValueView(StoreView):
    """One value per key (Kafka's ReadOnlyKeyValueStore)."""

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None if the key has no value."""
        return self._first(lambda store: store.get(key))

    def range(self, low: Any, high: Any) -> KeyValueIterator[Any, Any]:
        """Iterate over the keys from `low` to `high`, both inclusive; None means unbounded."""
        return self._walk(lambda store: store.range(low, high))

    def reverse_range(self, low: Any, high: Any) -> KeyValueIterator[Any, Any]:
        """Iterate over the keys from `high` down to `low`."""
        return self._walk(lambda store: store.reverse_range(low, high))

    def all(self) -> KeyValueIterator[Any, Any]:
        """Iterate over all entries."""
        return self._walk(lambda store: store.all())

    def reverse_all(self) -> KeyValueIterator[Any, Any]:
        """Iterate over all entries in reverse order."""
        return self._walk(lambda store: store.reverse_all())

    def prefix_scan(
        self, prefix: Any, serde: Serde[Any] | None = None
    ) -> KeyValueIterator[Any, Any]:
        """Iterate over keys whose bytes start with the bytes of `prefix`; `serde` serializes the
        prefix.
        """
        return self._walk(lambda store: store.prefix_scan(prefix, serde))

    def approximate_num_entries(self) -> int:
        """Return the number of keys."""
        with self._lock:
            return sum(store.approximate_num_entries() for store in self.stores)


class VersionedView(StoreView):
    """Versions of values by key (Kafka's VersionedKeyQuery)."""

    def get(self, key: Any, as_of: Instant | None = None) -> Any:
        """Return the latest value of a key, or its value at a time."""
        return self._first(lambda store: store.get(key, as_of))

    def get_as_of(self, key: Any, as_of: int) -> Any:
        """Return the value of a key at a time (ms)."""
        return self._first(lambda store: store.get_as_of(key, as_of))


class WindowView(StoreView):
    """Values by key and window start (Kafka's ReadOnlyWindowStore); times in ms, inclusive."""

    def fetch(self, key: Any, *times: Any) -> Any:
        """Return the value of the window of a key that starts at a time: `(key, start)`.

        `(key, time_from, time_to)` iterates over the windows of a key in a time range, and
        `(key_from, key_to, time_from, time_to)` over the windows of a range of keys.
        """
        if len(times) == 1:
            return self._first(lambda store: store.fetch(key, *times))
        return self._walk(lambda store: store.fetch(key, *times))

    def backward_fetch(self, key: Any, *times: Any) -> KeyValueIterator[Any, Any]:
        """Iterate like `fetch`, in reverse order; without an end, over all windows from a time on."""
        end = (_FOREVER,) if len(times) == 1 else ()
        return self._walk(lambda store: store.backward_fetch(key, *times, *end))

    def fetch_all(self, time_from: Instant, time_to: Instant) -> KeyValueIterator[Any, Any]:
        """Iterate over the windows of all keys that start between two times."""
        return self._walk(lambda store: store.fetch_all(time_from, time_to))

    def backward_fetch_all(
        self, time_from: Instant, time_to: Instant
    ) -> KeyValueIterator[Any, Any]:
        """Iterate like `fetch_all`, in reverse order."""
        return self._walk(lambda store: store.backward_fetch_all(time_from, time_to))

    def all(self) -> KeyValueIterator[Any, Any]:
        """Iterate over the windows of all keys."""
        return self._walk(lambda store: store.all())

    def backward_all(self) -> KeyValueIterator[Any, Any]:
        """Iterate over the windows of all keys in reverse order."""
        return self._walk(lambda store: store.backward_all())


class SessionView(StoreView):
    """Values by key and session (Kafka's ReadOnlySessionStore); times in ms, inclusive."""

    def fetch(self, *keys: Any) -> KeyValueIterator[Any, Any]:
        """Iterate over the sessions of a key or of a range of keys."""
        return self._walk(lambda store: store.fetch(*keys))

    def backward_fetch(self, *keys: Any) -> KeyValueIterator[Any, Any]:
        """Iterate like `fetch`, in reverse order."""
        return self._walk(lambda store: store.backward_fetch(*keys))

    def fetch_session(self, key: Any, start: Instant, end: Instant) -> Any:
        """Return the value of the session with these times."""
        return self._first(lambda store: store.fetch_session(key, start, end))

    def find_sessions(self, *bounds: Any) -> KeyValueIterator[Any, Any]:
        """Iterate over sessions: `(key, earliest_end, latest_start)`, optionally for a range of
        keys.
        """
        return self._walk(lambda store: store.find_sessions(*bounds))

    def backward_find_sessions(self, *bounds: Any) -> KeyValueIterator[Any, Any]:
        """Iterate like `find_sessions`, in reverse order."""
        return self._walk(lambda store: store.backward_find_sessions(*bounds))

    def fetch_all(self) -> KeyValueIterator[Any, Any]:
        """Iterate over the sessions of all keys."""
        return self._walk(lambda store: store.all())


class KeyValueStoreFacade(KeyValueView):
    """A table's store with plain values, for reads and writes (Kafka's class of this name).

    Values that are put have the timestamp -1.
    """

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None removes it."""
        self.stores[0].put(key, ValueAndTimestamp.make(value, NO_TIMESTAMP))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of a key without a value; return the existing value or None."""
        result = self.get(key)
        if result is None:
            self.put(key, value)
        return result

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set the values of several keys, in order."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Remove a key; return its previous value."""
        result = self.get(key)
        self.put(key, None)
        return result


class WindowStoreFacade(WindowView):
    """A windowed table's store with plain values, for reads and writes; puts have the timestamp -1."""

    def put(self, key: Any, value: Any, window_start: int) -> None:
        """Set the value of a window; None removes it."""
        self.stores[0].put(key, ValueAndTimestamp.make(value, NO_TIMESTAMP), window_start)


# The result of each typed accessor of a test driver by store type: the store itself, or a facade
# that hides the timestamps of its values.
_ACCESSORS: dict[str, dict[str, type[StoreView] | None]] = {
    "get_key_value_store": {"key_value": None, "timestamped_key_value": KeyValueStoreFacade},
    "get_timestamped_key_value_store": {"timestamped_key_value": None},
    "get_versioned_key_value_store": {"versioned": None},
    "get_window_store": {
        "window": None,
        "join_window": None,
        "timestamped_window": WindowStoreFacade,
    },
    "get_timestamped_window_store": {"timestamped_window": None},
    "get_session_store": {"session": None},
}


def accessed(builder: StoreBuilder, store: Any, accessor: str) -> Any:
    """Return a store as Kafka's typed accessors do; ValueError if it is of another type."""
    kinds = _ACCESSORS[accessor]
    if builder.kind in kinds:
        facade = kinds[builder.kind]
        return store if facade is None else facade(builder.name, [store])
    fitting = [
        accessor for accessor, store_kinds in _ACCESSORS.items() if builder.kind in store_kinds
    ]
    if not fitting:
        raise ValueError(
            f"store {builder.name!r} is an operator's internal buffer and has no accessor"
        )
    calls = " or ".join(f"{accessor_name}({builder.name!r})" for accessor_name in fitting)
    kind = builder.kind.replace("_", " ")
    raise ValueError(
        f"store {builder.name!r} is a {kind} store, which {accessor} does not return: call {calls}"
    )


_VIEWS: dict[str, type[StoreView]] = {
    "key_value": KeyValueView,
    "timestamped_key_value": KeyValueView,
    "versioned": VersionedView,
    "window": WindowView,
    "timestamped_window": WindowView,
    "session": SessionView,
}


def view_of(builder: StoreBuilder, stores: Sequence[Any], *, with_timestamps: bool) -> StoreView:
    """Return the view of stores built from one description; StreamsError for buffers."""
    kind = _VIEWS.get(builder.kind)
    if kind is None:
        raise StreamsError(
            f"store {builder.name} is an operator's internal buffer and cannot be queried"
        )
    return kind(builder.name, stores, with_timestamps=with_timestamps)


def empty_view(
    builder: StoreBuilder, defaults: DefaultSerdes, tasks: int, *, with_timestamps: bool = False
) -> StoreView:
    """Return a view of a store with this number of tasks, before its changelog is read."""
    stores = [builder.build(defaults, None) for _ in range(tasks)]
    return view_of(builder, stores, with_timestamps=with_timestamps)

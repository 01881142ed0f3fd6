"""Window stores: one value per key and window start, or several if duplicates are retained."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from ottla.streams.model.durations import Instant, instant_ms
from ottla.streams.model.records import TimeWindow, ValueAndTimestamp, Windowed
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import Serde
from ottla.streams.stores.iterators import KeyValueIterator
from ottla.streams.stores.key_value import timestamped
from ottla.streams.stores.ordered import (
    EXPIRED_SEGMENT,
    Changelog,
    OnExpired,
    OpenMap,
    Segments,
    ignore_expired,
    open_memory,
)

K = TypeVar("K")
V = TypeVar("V")

# A stored key is the key, the window start and a sequence number for duplicates, as in Kafka.
_TAIL = struct.Struct(">qi")
_LAST = (1 << 31) - 1
_FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class WindowStorage:
    """The retention and the size of windows, and whether duplicates are retained.

    `by_time` adds an order by time over all keys, as Kafka has for windows that are emitted on
    close.
    """

    retention_ms: int
    window_size_ms: int
    retain_duplicates: bool = False
    by_time: bool = False
    open_map: OpenMap = open_memory
    on_expired: OnExpired = ignore_expired


class WindowStore(SnakeCase, Generic[K, V]):
    """Values by key and window start (Kafka's WindowStore); windows past the retention are dropped."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None,
        storage: WindowStorage,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._changelog = changelog
        self._segments = Segments(
            storage.retention_ms,
            edge_is_seen=storage.by_time,
            by_time=storage.by_time,
            open_map=storage.open_map,
        )
        self._window_size_ms = storage.window_size_ms
        self._retain_duplicates = storage.retain_duplicates
        self._by_time = storage.by_time
        self._on_expired = storage.on_expired
        self._sequence = 0
        self._logged = 0
        # Attributes that are needed several times per record are looked up once.
        self._to_key, self._read = key.serialize, value.deserialize

    def put(self, key: K, value: V | None, window_start: int) -> None:
        """Set the value of a window; None removes it, or does nothing if duplicates are retained."""
        prefix = self._to_key(key)
        data = self._value.to_bytes(value)
        if not self._retain_duplicates:
            stored_key = prefix + _TAIL.pack(window_start, 0)
            self._set(window_start, stored_key, data)
            self._log(stored_key, data)
            return
        if data is not None:
            self._sequence = (self._sequence + 1) & _LAST
            self._set(window_start, prefix + _TAIL.pack(window_start, self._sequence), data)
        # The changelog has its own sequence numbers: it also gets updates that the store rejects.
        self._logged = (self._logged + 1) & _LAST
        self._log(prefix + _TAIL.pack(window_start, self._logged), data)

    def _set(self, window_start: int, stored: bytes, data: bytes | None) -> None:
        if not self._segments.put(window_start, stored, data):
            self._on_expired(EXPIRED_SEGMENT)

    def _log(self, stored: bytes, data: bytes | None) -> None:
        if self._changelog is not None:
            self._changelog(stored, data, None)

    @overload
    def fetch(self, key: K, first: int) -> V | None: ...
    @overload
    def fetch(self, key: K, first: Instant, second: Instant) -> KeyValueIterator[int, V]: ...
    @overload
    def fetch(
        self, key: K | None, first: K | None, second: Instant, third: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    def fetch(self, key: Any, first: Any, second: Any = None, third: Any = None) -> Any:
        """Return the value of the window of a key that starts at a time: `(key, start)`.

        `(key, time_from, time_to)` iterates over the windows of a key that start between these
        times. `(key_from, key_to, time_from, time_to)` does so for a range of keys; None means
        unbounded. Keys and times are inclusive.
        """
        if second is None:
            data = self._segments.get(first, self._to_key(key) + _TAIL.pack(first, 0))
            return None if data is None else self._read(data)
        return self._walk((key, first, second, third), backward=False)

    @overload
    def backward_fetch(
        self, key: K, first: Instant, second: Instant
    ) -> KeyValueIterator[int, V]: ...
    @overload
    def backward_fetch(
        self, key: K | None, first: K | None, second: Instant, third: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    def backward_fetch(self, key: Any, first: Any, second: Any, third: Any = None) -> Any:
        """Iterate like `fetch`, in reverse order."""
        return self._walk((key, first, second, third), backward=True)

    def _walk(self, span: tuple[Any, Any, Any, Any], *, backward: bool) -> KeyValueIterator[Any, V]:
        low, high, second, third = span
        if third is None:
            times = instant_ms(high), instant_ms(second)
            return KeyValueIterator(self.fetch_range(low, *times, backward=backward))
        times = instant_ms(second), instant_ms(third)
        bounds = self._key.to_bytes(low), self._key.to_bytes(high)
        return self._of_keys(times, bounds, backward=backward)

    def fetch_forwarded(self, key: K, window_start: int) -> V | None:
        """Return the value of a window without updates that a cache has not forwarded yet."""
        stored = self._to_key(key) + _TAIL.pack(window_start, 0)
        return self._value.from_bytes(self._segments.get_forwarded(window_start, stored))

    def fetch_range(
        self, key: K, time_from: int, time_to: int, *, backward: bool = False
    ) -> Iterator[tuple[int, V]]:
        """Iterate over the windows of a key that start from `time_from` to `time_to`, both
        inclusive.
        """
        first = max(time_from, self._segments.first_visible)
        prefix = self._key.serialize(key)
        if time_to < first:
            return
        low, high = prefix + _TAIL.pack(first, 0), prefix + _TAIL.pack(time_to, _LAST)
        length = len(low)
        for segment in self._segments.between(first, time_to, reverse=backward):
            for stored, data in segment.scan(low, high, reverse=backward):
                if len(stored) == length and stored.startswith(prefix):
                    yield _TAIL.unpack_from(stored, length - 12)[0], self._value.deserialize(data)

    def fetch_all(self, time_from: Instant, time_to: Instant) -> KeyValueIterator[Windowed[K], V]:
        """Iterate over the windows of all keys that start from `time_from` to `time_to`, both
        inclusive.
        """
        return self._of_keys((instant_ms(time_from), instant_ms(time_to)), backward=False)

    def backward_fetch_all(
        self, time_from: Instant, time_to: Instant
    ) -> KeyValueIterator[Windowed[K], V]:
        """Iterate like `fetch_all`, in reverse order."""
        return self._of_keys((instant_ms(time_from), instant_ms(time_to)), backward=True)

    def all(self) -> KeyValueIterator[Windowed[K], V]:
        """Iterate over the windows of all keys."""
        return self.fetch_all(0, _FOREVER)

    def backward_all(self) -> KeyValueIterator[Windowed[K], V]:
        """Iterate over the windows of all keys in reverse order."""
        return self.backward_fetch_all(0, _FOREVER)

    def _of_keys(
        self,
        times: tuple[int, int],
        bounds: tuple[bytes | None, bytes | None] = (None, None),
        *,
        backward: bool,
    ) -> KeyValueIterator[Windowed[K], V]:
        (time_from, time_to), (low, high) = times, bounds
        first = max(time_from, self._segments.first_visible)
        results = []
        for stored, data in self._segments.in_time(first, time_to):
            start = _TAIL.unpack_from(stored, len(stored) - 12)[0]
            key = stored[:-12]
            is_within = (low is None or low <= key) and (high is None or key <= high)
            if first <= start <= time_to and is_within:
                results.append((start, key, data))
        if self._by_time:
            results.sort()
        return KeyValueIterator(map(self._entry, reversed(results) if backward else results))

    def _entry(self, entry: tuple[int, bytes, bytes]) -> tuple[Windowed[K], V]:
        start, key, data = entry
        window = TimeWindow.of_size(start, self._window_size_ms)
        return Windowed(self._key.deserialize(key), window), self._value.deserialize(data)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record."""
        self._segments.put(_TAIL.unpack_from(key, len(key) - _TAIL.size)[0], key, value)

    def remember(self) -> tuple[int, int, tuple[int, list[int]]]:
        """Return the store's time and its sequence number for duplicates, for `recall`."""
        return self._sequence, self._logged, self._segments.remember()

    def recall(self, remembered: tuple[int, int, tuple[int, list[int]]]) -> None:
        """Restore the state that `remember` returned."""
        self._sequence, self._logged, segments = remembered
        self._segments.recall(segments)

    def close(self) -> None:
        """Do nothing: no resource is open."""


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with timestamps by key and window start (Kafka's TimestampedWindowStore)."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None,
        storage: WindowStorage,
    ) -> None:
        super().__init__(name, key, timestamped(value), changelog, storage)

    def _log(self, stored: bytes, data: bytes | None) -> None:
        # The changelog holds only the value; its timestamp is the record's.
        if self._changelog is None:
            return
        if data is None:
            self._changelog(stored, None, None)
        else:
            self._changelog(stored, data[8:], int.from_bytes(data[:8], "big", signed=True))

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record; the value's timestamp is the record's."""
        stored = None if value is None else timestamp.to_bytes(8, "big", signed=True) + value
        super().restore(key, stored, timestamp)

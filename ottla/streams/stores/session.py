"""Session stores: one value per key and session."""

import struct
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, overload

from ottla.streams.model.durations import Instant, instant_ms
from ottla.streams.model.records import Windowed, unchecked_session
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import Serde
from ottla.streams.stores.iterators import KeyValueIterator
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

_TAIL = struct.Struct(">qq")
_FOREVER = (1 << 63) - 1
_ITSELF: Any = object()


def _at_any_time(key: Any, to: Any) -> tuple[Any, Any, Any, Any]:
    return (key, 0, _FOREVER, None) if to is _ITSELF else (key, to, 0, _FOREVER)


class SessionStore(SnakeCase, Generic[K, V]):
    """Values by key and session (Kafka's SessionStore); sessions past the retention are dropped."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None,
        *,
        retention_ms: int,
        by_time: bool = False,
        open_map: OpenMap = open_memory,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._changelog = changelog
        self._segments = Segments(retention_ms, by_time=by_time, open_map=open_map)
        self.on_expired: OnExpired = ignore_expired
        """Called for each put past the retention."""

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; None removes it."""
        if not self._set(session, value):
            self.on_expired(EXPIRED_SEGMENT)

    def _set(self, session: Windowed[K], value: V | None) -> bool:
        start, end = session.window
        stored = self._key.serialize(session.key) + _TAIL.pack(end, start)
        data = self._value.to_bytes(value)
        is_live = self._segments.put(end, stored, data)
        if self._changelog is not None:
            self._changelog(stored, data, None)
        return is_live

    def remove(self, session: Windowed[K]) -> None:
        """Remove a session; nothing is dropped if it is past the retention."""
        self._set(session, None)

    def fetch_session(self, key: K, start: Instant, end: Instant) -> V | None:
        """Return the value of the session that starts and ends at these times."""
        times = instant_ms(end), instant_ms(start)
        return self._value.from_bytes(
            self._segments.get(times[0], self._key.serialize(key) + _TAIL.pack(*times))
        )

    def fetch_forwarded(self, key: K, start: int, end: int) -> V | None:
        """Return the value of a session without updates that a cache has not forwarded yet."""
        stored = self._key.serialize(key) + _TAIL.pack(end, start)
        return self._value.from_bytes(self._segments.get_forwarded(end, stored))

    @overload
    def find_sessions(self, key: Instant, first: Instant) -> KeyValueIterator[Windowed[K], V]: ...
    @overload
    def find_sessions(
        self, key: K, first: Instant, second: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    @overload
    def find_sessions(
        self, key: K | None, first: K | None, second: Instant, third: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    def find_sessions(self, key: Any, first: Any, second: Any = None, third: Any = None) -> Any:
        """Iterate over sessions that overlap a time range, ordered by their end.

        `(key, earliest_end, latest_start)` selects the sessions of a key that end at or after
        `earliest_end` and start at or before `latest_start`. `(key_from, key_to, earliest_end,
        latest_start)` selects a range of keys; None means unbounded. `(earliest_end, latest_end)`
        selects all sessions that ended between these times.
        """
        if second is None:
            return KeyValueIterator(self.find_ended(instant_ms(key), instant_ms(first)))
        return KeyValueIterator(self._sessions((key, first, second, third), backward=False))

    @overload
    def backward_find_sessions(
        self, key: K, first: Instant, second: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    @overload
    def backward_find_sessions(
        self, key: K | None, first: K | None, second: Instant, third: Instant
    ) -> KeyValueIterator[Windowed[K], V]: ...
    def backward_find_sessions(self, key: Any, first: Any, second: Any, third: Any = None) -> Any:
        """Iterate like `find_sessions`, in reverse order."""
        return KeyValueIterator(self._sessions((key, first, second, third), backward=True))

    def _sessions(
        self, bounds: tuple[Any, Any, Any, Any], *, backward: bool
    ) -> Iterator[tuple[Windowed[K], V]]:
        low, high, second, third = bounds
        if third is None:
            return self.walk(low, instant_ms(high), instant_ms(second), backward=backward)
        times = instant_ms(second), instant_ms(third)
        return self._of_keys((self._key.to_bytes(low), self._key.to_bytes(high)), times, backward)

    def walk(
        self, key: K, earliest_end: int, latest_start: int, *, backward: bool = False
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Yield plain tuples of a key's sessions that end at or after and start at or before these
        times.
        """
        first = max(0, earliest_end, self._segments.first_visible)
        prefix = self._key.serialize(key)
        low, high = prefix + _TAIL.pack(first, 0), prefix + _TAIL.pack(_FOREVER, _FOREVER)
        for segment in self._segments.between(first, _FOREVER, reverse=backward):
            for stored, data in segment.scan(low, high, reverse=backward):
                end, start = _TAIL.unpack_from(stored, len(stored) - 16)
                if stored[:-16] == prefix and start <= latest_start:
                    yield (
                        Windowed(key, unchecked_session((start, end))),
                        self._value.deserialize(data),
                    )

    def _of_keys(
        self, bounds: tuple[bytes | None, bytes | None], times: tuple[int, int], backward: bool
    ) -> Iterator[tuple[Windowed[K], V]]:
        low, high = bounds
        first = max(0, times[0], self._segments.first_visible)
        results = []
        for stored, data in self._segments.in_time(first, _FOREVER):
            end, start = _TAIL.unpack_from(stored, len(stored) - 16)
            key = stored[:-16]
            is_within = (low is None or low <= key) and (high is None or key <= high)
            if first <= end and start <= times[1] and is_within:
                results.append((key, start, end, data))
        for key, start, end, data in reversed(results) if backward else results:
            window = unchecked_session((start, end))
            yield Windowed(self._key.deserialize(key), window), self._value.deserialize(data)

    @overload
    def fetch(self, key: K) -> KeyValueIterator[Windowed[K], V]: ...
    @overload
    def fetch(self, key: K | None, to: K | None) -> KeyValueIterator[Windowed[K], V]: ...
    def fetch(self, key: Any, to: Any = _ITSELF) -> Any:
        """Iterate over all sessions of a key or of a range of keys; None means unbounded."""
        return KeyValueIterator(self._sessions(_at_any_time(key, to), backward=False))

    @overload
    def backward_fetch(self, key: K) -> KeyValueIterator[Windowed[K], V]: ...
    @overload
    def backward_fetch(self, key: K | None, to: K | None) -> KeyValueIterator[Windowed[K], V]: ...
    def backward_fetch(self, key: Any, to: Any = _ITSELF) -> Any:
        """Iterate like `fetch`, in reverse order."""
        return KeyValueIterator(self._sessions(_at_any_time(key, to), backward=True))

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over sessions of all keys that ended between two times, both inclusive, by time."""
        first = earliest_end
        results = []
        for stored, data in self._segments.in_time(first, latest_end):
            end, start = _TAIL.unpack_from(stored, len(stored) - 16)
            if first <= end <= latest_end:
                results.append((end, start, stored[:-16], data))
        for end, start, key, data in sorted(results):
            window = unchecked_session((start, end))
            yield Windowed(self._key.deserialize(key), window), self._value.deserialize(data)

    def all(self) -> KeyValueIterator[Windowed[K], V]:
        """Iterate over the sessions of all keys, ordered by their end."""
        return KeyValueIterator(self.find_ended(0, _FOREVER))

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record."""
        self._segments.put(_TAIL.unpack_from(key, len(key) - _TAIL.size)[0], key, value)

    def remember(self) -> tuple[int, list[int]]:
        """Return the store's time, for `recall`."""
        return self._segments.remember()

    def recall(self, remembered: tuple[int, list[int]]) -> None:
        """Restore the state that `remember` returned."""
        self._segments.recall(remembered)

    def close(self) -> None:
        """Do nothing: no resource is open."""

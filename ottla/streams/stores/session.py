"""Session stores: one value a key and session."""

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

from ottla.streams.records import SessionWindow, Windowed
from ottla.streams.serdes import Serde
from ottla.streams.stores.ordered import Changelog, OpenMap, Segments, open_memory

K = TypeVar("K")
V = TypeVar("V")

_TAIL = struct.Struct(">qq")
_FOREVER = (1 << 63) - 1


class SessionStore(Generic[K, V]):
    """Values by key and session (Kafka's SessionStore); sessions that ended too long ago are gone."""

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

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; None removes it."""
        start, end = session.window
        stored = self._key.serialize(session.key) + _TAIL.pack(end, start)
        data = self._value.to_bytes(value)
        self._segments.put(end, stored, data)
        if self._changelog is not None:
            self._changelog(stored, data, None)

    def remove(self, session: Windowed[K]) -> None:
        """Remove a session."""
        self.put(session, None)

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the value of the session that starts and ends at these times."""
        stored = self._key.serialize(key) + _TAIL.pack(end, start)
        return self._value.from_bytes(self._segments.get(end, stored))

    def find_sessions(
        self, key: K, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Walk a key's sessions that end not before and start not after these times, by their end."""
        first = max(0, earliest_end, self._segments.first_visible)
        prefix = self._key.serialize(key)
        low, high = prefix + _TAIL.pack(first, 0), prefix + _TAIL.pack(_FOREVER, _FOREVER)
        for segment in self._segments.between(first, _FOREVER, reverse=False):
            for stored, data in segment.scan(low, high):
                end, start = _TAIL.unpack_from(stored, len(stored) - 16)
                if stored[:-16] == prefix and start <= latest_start:
                    yield Windowed(key, SessionWindow(start, end)), self._value.deserialize(data)

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """Walk all sessions of a key."""
        return self.find_sessions(key, 0, _FOREVER)

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[K], V]]:
        """Walk the sessions of all keys that end within these times, both included, by time."""
        first = earliest_end
        found = []
        for stored, data in self._segments.in_time(first, latest_end):
            end, start = _TAIL.unpack_from(stored, len(stored) - 16)
            if first <= end <= latest_end:
                found.append((end, start, stored[:-16], data))
        for end, start, key, data in sorted(found):
            window = SessionWindow(start, end)
            yield Windowed(self._key.deserialize(key), window), self._value.deserialize(data)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Walk the sessions of all keys."""
        return self.find_ended(0, _FOREVER)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take a record of the changelog back, as it was logged."""
        self._segments.put(_TAIL.unpack_from(key, len(key) - _TAIL.size)[0], key, value)

    def remember(self) -> tuple[int, list[int]]:
        """Return what is known of time, for `recall`."""
        return self._segments.remember()

    def recall(self, remembered: tuple[int, list[int]]) -> None:
        """Go on where `remember` was asked."""
        self._segments.recall(remembered)

    def close(self) -> None:
        """Nothing is open."""

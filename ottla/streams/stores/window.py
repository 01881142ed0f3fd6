"""Window stores: one value a key and window start, or several where duplicates are retained."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from ottla.streams.records import TimeWindow, ValueAndTimestamp, Windowed
from ottla.streams.serdes import Serde
from ottla.streams.stores.key_value import timestamped
from ottla.streams.stores.ordered import Changelog, OpenMap, Segments, open_memory

K = TypeVar("K")
V = TypeVar("V")

# A stored key is the key, the window's start and a number that tells duplicates apart, as in Kafka.
_TAIL = struct.Struct(">qi")
_LAST = (1 << 31) - 1
_FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class Keeping:
    """How windows are kept: how long, how large they are, and whether a place holds several values.

    `by_time` walks all keys in the order of time, as Kafka does for windows that are emitted on close.
    """

    retention_ms: int
    window_size_ms: int
    retain_duplicates: bool = False
    by_time: bool = False
    open_map: OpenMap = open_memory


class WindowStore(Generic[K, V]):
    """Values by key and window start (Kafka's WindowStore); what is past the retention is gone."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None,
        keeping: Keeping,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._changelog = changelog
        self._segments = Segments(
            keeping.retention_ms,
            edge_is_seen=keeping.by_time,
            by_time=keeping.by_time,
            open_map=keeping.open_map,
        )
        self._window_size_ms = keeping.window_size_ms
        self._retain_duplicates = keeping.retain_duplicates
        self._by_time = keeping.by_time
        self._sequence = 0
        self._logged = 0
        # What a record takes several times is looked up once.
        self._to_key, self._read = key.serialize, value.deserialize

    def put(self, key: K, value: V | None, window_start: int) -> None:
        """Set the value of a window; None removes it (where duplicates are retained: does nothing)."""
        prefix = self._to_key(key)
        data = self._value.to_bytes(value)
        if not self._retain_duplicates:
            place = prefix + _TAIL.pack(window_start, 0)
            self._segments.put(window_start, place, data)
            self._log(place, data)
            return
        if data is not None:
            self._sequence = (self._sequence + 1) & _LAST
            self._segments.put(
                window_start, prefix + _TAIL.pack(window_start, self._sequence), data
            )
        # The changelog counts for itself: it also has what the store does not take.
        self._logged = (self._logged + 1) & _LAST
        self._log(prefix + _TAIL.pack(window_start, self._logged), data)

    def _log(self, stored: bytes, data: bytes | None) -> None:
        if self._changelog is not None:
            self._changelog(stored, data, None)

    def fetch(self, key: K, window_start: int) -> V | None:
        """Return the value of one window."""
        stored = self._to_key(key) + _TAIL.pack(window_start, 0)
        data = self._segments.get(window_start, stored)
        return None if data is None else self._read(data)

    def fetch_range(
        self, key: K, time_from: int, time_to: int, *, backward: bool = False
    ) -> Iterator[tuple[int, V]]:
        """Walk the windows of a key that start from `time_from` to `time_to`, both included."""
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

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed[K], V]]:
        """Walk the windows of all keys that start from `time_from` to `time_to`, both included."""
        first = max(time_from, self._segments.first_visible)
        found = []
        for stored, data in self._segments.in_time(first, time_to):
            start = _TAIL.unpack_from(stored, len(stored) - 12)[0]
            if first <= start <= time_to:
                found.append((start, stored[:-12], data))
        if self._by_time:
            found.sort()
        for start, key, data in found:
            window = TimeWindow(start, min(start + self._window_size_ms, _FOREVER))
            yield Windowed(self._key.deserialize(key), window), self._value.deserialize(data)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Walk the windows of all keys."""
        return self.fetch_all(0, _FOREVER)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take a record of the changelog back, as it was logged."""
        self._segments.put(_TAIL.unpack_from(key, len(key) - _TAIL.size)[0], key, value)

    def remember(self) -> tuple[int, int, tuple[int, list[int]]]:
        """Return what is known of time and of duplicates, for `recall`."""
        return self._sequence, self._logged, self._segments.remember()

    def recall(self, remembered: tuple[int, int, tuple[int, list[int]]]) -> None:
        """Go on where `remember` was asked."""
        self._sequence, self._logged, segments = remembered
        self._segments.recall(segments)

    def close(self) -> None:
        """Nothing is open."""


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with their time by key and window start (Kafka's TimestampedWindowStore)."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None,
        keeping: Keeping,
    ) -> None:
        super().__init__(name, key, timestamped(value), changelog, keeping)

    def _log(self, stored: bytes, data: bytes | None) -> None:
        # The changelog holds the value alone; its time is the record's.
        if self._changelog is None:
            return
        if data is None:
            self._changelog(stored, None, None)
        else:
            self._changelog(stored, data[8:], int.from_bytes(data[:8], "big", signed=True))

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take a record of the changelog back: the value's time is the record's."""
        stored = None if value is None else timestamp.to_bytes(8, "big", signed=True) + value
        super().restore(key, stored, timestamp)

"""The port behind every store: an ordered map of bytes, and its in-memory form.

Stores keep bytes, as Kafka's do: a change to an object after it was put does not change the store.
"""

import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Protocol

Changelog = Callable[[bytes, bytes | None, int | None], None]
"""A function that gets every write as key, value and time (None: that of the current record)."""

OnExpired = Callable[[str], None]
"""A function that gets the reason for which a put past the retention was dropped."""
EXPIRED_SEGMENT = "for expired segment"
EXPIRED_PUT = "for expired put"

_SKIPPED = 32
_TIME = struct.Struct(">q")
_FOREVER = (1 << 63) - 1


class OrderedBytes(Protocol):
    """A map of bytes that can be iterated in the order of its keys."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a snapshot of the keys from `low` to `high`, both inclusive."""

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all keys; changes during the iteration may or may not be seen."""

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value, or None if the map is empty."""

    def clear(self) -> None:
        """Remove all keys."""

    def __len__(self) -> int:
        """Return the number of keys."""


def forwarding_reader(entries: OrderedBytes) -> Callable[[bytes], bytes | None]:
    """Return the function that reads a map without updates that a cache has not forwarded yet."""
    read: Callable[[bytes], bytes | None] = getattr(entries, "get_forwarded", entries.get)
    return read


OpenMap = Callable[[str], OrderedBytes]
"""A function that opens the map of a name, with its stored content; empty at first."""


class MemoryBytes:
    """An ordered map in memory; writes are cheap, and keys are sorted when they are iterated."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        # Sorted; may contain removed keys. `_fresh` are the keys that are not in it yet.
        self._keys: list[bytes] = []
        self._fresh: set[bytes] = set()
        self._removed: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        return self._values.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        if value is None:
            if self._values.pop(key, None) is not None:
                self._forget(key)
            return
        if key not in self._values:
            if key in self._removed:
                self._removed.remove(key)
            else:
                self._fresh.add(key)
        self._values[key] = value

    def _forget(self, key: bytes) -> None:
        if key in self._fresh:
            self._fresh.remove(key)
        else:
            self._removed.add(key)

    def _settle(self) -> None:
        if len(self._removed) * 2 > len(self._keys):
            self._keys = [key for key in self._keys if key not in self._removed]
            self._removed.clear()
        if len(self._fresh) > 8:
            self._keys.extend(self._fresh)
            self._keys.sort()
        else:
            for key in self._fresh:
                insort(self._keys, key)
        self._fresh.clear()

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a snapshot of the keys from `low` to `high`, both inclusive."""
        self._settle()
        first = 0 if low is None else bisect_left(self._keys, low)
        # No key lies between a key and the same key followed by a zero byte.
        last = len(self._keys) if high is None else bisect_left(self._keys, high + b"\0")
        keys = self._keys[first:last]
        results = [(key, self._values[key]) for key in keys if key in self._values]
        return reversed(results) if reverse else iter(results)

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all keys; changes during the iteration may or may not be seen."""
        self._settle()
        for key in self._keys:
            if key in self._values:
                yield key, self._values[key]

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value, or None if the map is empty."""
        self._settle()
        skipped = 0
        while skipped < len(self._keys) and self._keys[skipped] in self._removed:
            skipped += 1
        if skipped > _SKIPPED:
            # Drop the removed keys, so that repeated removal of the first key does not skip them
            # each time.
            self._removed.difference_update(self._keys[:skipped])
            del self._keys[:skipped]
            skipped = 0
        if skipped == len(self._keys):
            return None
        key = self._keys[skipped]
        return key, self._values[key]

    def clear(self) -> None:
        """Remove all keys."""
        for collection in (self._values, self._keys, self._fresh, self._removed):
            collection.clear()

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._values)


def open_memory(_name: str) -> OrderedBytes:
    """Open a map that is discarded with its store."""
    return MemoryBytes()


def ignore_expired(_reason: str) -> None:
    """Do nothing about a dropped put."""


class Segments:
    """Ordered maps, one per time segment, so that expired data can be dropped a segment at a time.

    Entries older than the retention are never returned, as in Kafka's segmented stores. The
    segments' time is the largest time that was put. If `edge_is_seen` is True, an entry exactly as
    old as the retention is still returned, as in Kafka's time-ordered stores. If `by_time` is True,
    the maps have an index by time, for frequent scans over all keys of a time range.
    """

    def __init__(
        self,
        retention_ms: int,
        *,
        edge_is_seen: bool = False,
        by_time: bool = False,
        open_map: OpenMap = open_memory,
    ) -> None:
        self._retention_ms = retention_ms
        self._edge = 0 if edge_is_seen else 1
        self._interval_ms = max(retention_ms // 2, 60_000)
        self._open_map = open_map
        self._by_time = by_time
        self._segments: dict[int, OrderedBytes] = {}
        self._times: dict[int, OrderedBytes] = {}
        self._set_latest(-1)

    def _set_latest(self, time: int) -> None:
        self._latest = time
        self._oldest = (time - self._retention_ms) // self._interval_ms
        self.first_visible = max(0, time - self._retention_ms + self._edge)
        """The earliest time that is still returned."""

    def put(self, time: int, key: bytes, value: bytes | None) -> bool:
        """Set a key at a time; return True if that time was within the retention."""
        if time > self._latest:
            before = self._oldest
            self._set_latest(time)
            if self._oldest > before:
                self._drop_old()
        segment = time // self._interval_ms
        if segment < self._oldest:
            return False
        entries = self._segments.get(segment)
        if entries is None:
            entries = self._open(segment)
        entries.put(key, value)
        if self._by_time:
            self._times[segment].put(_TIME.pack(time) + key, None if value is None else b"")
        return True

    def _drop_old(self) -> None:
        for number in [segment for segment in self._segments if segment < self._oldest]:
            self._segments.pop(number).clear()
            if self._by_time:
                self._times.pop(number).clear()

    def _open(self, segment: int) -> OrderedBytes:
        entries = self._segments[segment] = self._open_map(str(segment))
        if self._by_time:
            self._times[segment] = self._open_map(f"{segment}/times")
        return entries

    def remember(self) -> tuple[int, list[int]]:
        """Return the time and the segments, for `recall`."""
        return self._latest, list(self._segments)

    def recall(self, remembered: tuple[int, list[int]]) -> None:
        """Restore the state that `remember` returned."""
        latest, segments = remembered
        self._set_latest(latest)
        for segment in segments:
            self._open(segment)

    def get(self, time: int, key: bytes) -> bytes | None:
        """Return the value of a key at a time."""
        segment = self._segments.get(time // self._interval_ms)
        return None if segment is None or time < self.first_visible else segment.get(key)

    def get_forwarded(self, time: int, key: bytes) -> bytes | None:
        """Return the value of a key at a time, without updates that a cache has not forwarded."""
        segment = self._segments.get(time // self._interval_ms)
        hidden = segment is None or time < self.first_visible
        return None if segment is None or hidden else forwarding_reader(segment)(key)

    def between(self, time_from: int, time_to: int, *, reverse: bool) -> list[OrderedBytes]:
        """Return the maps that cover a time range, in the order of time."""
        low, high = time_from // self._interval_ms, time_to // self._interval_ms
        results = sorted(
            (segment for segment in self._segments if low <= segment <= high), reverse=reverse
        )
        return [self._segments[number] for number in results]

    def in_time(self, time_from: int, time_to: int) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the keys in a time range; without an index, the result may contain nearby
        keys.
        """
        low, high = time_from // self._interval_ms, time_to // self._interval_ms
        for number in sorted(
            segment_number for segment_number in self._segments if low <= segment_number <= high
        ):
            segment = self._segments[number]
            if not self._by_time:
                yield from segment.scan()
                continue
            # Every key is longer than a time alone.
            bounds = _TIME.pack(time_from), _TIME.pack(min(time_to, _FOREVER - 1) + 1)
            for time_and_key, _ in self._times[number].scan(*bounds):
                key = time_and_key[_TIME.size :]
                data = segment.get(key)
                assert data is not None
                yield key, data

"""A key-value store with expiry: entries expire some stream time after their last update."""

import struct
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ottla.streams.serdes import Serde
from ottla.streams.stores.key_value import KeyValueStore
from ottla.streams.stores.ordered import Changelog, OpenMap

K = TypeVar("K")
V = TypeVar("V")

_TIME = struct.Struct(">q")


class ExpiringKeyValueStore(KeyValueStore[K, V], Generic[K, V]):
    """One value per key until `ttl_ms` of stream time have passed; then the changelog gets a
    tombstone.

    An expired entry is never returned; the next write removes it.
    """

    def __init__(
        self,
        name: str,
        serdes: tuple[Serde[K], Serde[V]],
        changelog: Changelog | None,
        open_map: OpenMap,
        ttl_ms: int,
        stream_time: Callable[[], int],
    ) -> None:
        super().__init__(name, *serdes, changelog, open_map(name))
        self._by_time = open_map(f"{name}/times")
        self._ttl_ms = ttl_ms
        self._stream_time = stream_time

    def _is_live(self, data: bytes) -> bool:
        put_at: int = _TIME.unpack_from(data)[0]
        return put_at + self._ttl_ms > self._stream_time()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if it has expired."""
        data = self._held.get(self._key.serialize(key))
        if data is None or not self._is_live(data):
            return None
        return self._value.deserialize(data[_TIME.size :])

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None removes it."""
        self._expire()
        key_bytes, data = self._key.serialize(key), self._value.to_bytes(value)
        now = self._stream_time()
        self._keep(key_bytes, data, now)
        if self._changelog is not None:
            self._changelog(key_bytes, data, None)

    def _keep(self, key: bytes, data: bytes | None, now: int) -> None:
        before = self._held.get(key)
        if before is not None:
            self._by_time.put(before[: _TIME.size] + key, None)
        time = _TIME.pack(max(0, now))
        self._held.put(key, None if data is None else time + data)
        if data is not None:
            self._by_time.put(time + key, b"")

    def _expire(self) -> None:
        """Remove expired entries, the oldest first."""
        while (first := self._by_time.first()) is not None and not self._is_live(first[0]):
            key = first[0][_TIME.size :]
            self._keep(key, None, 0)
            if self._changelog is not None:
                self._changelog(key, None, None)

    def _walk(
        self, low: bytes | None, high: bytes | None, *, reverse: bool
    ) -> Iterable[tuple[bytes, bytes]]:
        scanned = self._held.scan(low, high, reverse=reverse)
        return ((key, data[_TIME.size :]) for key, data in scanned if self._is_live(data))

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record; its timestamp is the time of the update."""
        self._keep(key, value, timestamp)

    def approximate_num_entries(self) -> int:
        """Return the number of keys, which may include expired ones."""
        return len(self._held)

"""Key-value stores, with and without the timestamp of each value."""

import struct
from collections.abc import Iterable
from typing import Generic, TypeVar

from ottla.streams.model.records import ValueAndTimestamp
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import Serde
from ottla.streams.stores.iterators import KeyValueIterator
from ottla.streams.stores.ordered import Changelog, MemoryBytes, OrderedBytes, forwarding_reader

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")

_TIME = struct.Struct(">q")


class KeyValueStore(SnakeCase, Generic[K, V]):
    """One value per key, ordered by the serialized keys (Kafka's KeyValueStore)."""

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None = None,
        entries: OrderedBytes | None = None,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._changelog = changelog
        self._held = MemoryBytes() if entries is None else entries
        # Each record calls these several times, so they are looked up once.
        self._to_key, self._read = key.serialize, value.deserialize
        self._get, self._put = self._held.get, self._held.put

    def get(self, key: K) -> V | None:
        """Return the value of a key."""
        data = self._get(self._to_key(key))
        return None if data is None else self._read(data)

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None removes it."""
        key_bytes = self._to_key(key)
        data = self._value.to_bytes(value)
        self._put(key_bytes, data)
        if self._changelog is not None:
            self._changelog(key_bytes, data, None)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of a key without a value; return the existing value or None."""
        result = self.get(key)
        if result is None:
            self.put(key, value)
        return result

    def put_all(self, entries: list[tuple[K, V | None]]) -> None:
        """Set the values of several keys, in order."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Remove a key; return its previous value."""
        result = self.get(key)
        self.put(key, None)
        return result

    def range(self, low: K | None, high: K | None) -> KeyValueIterator[K, V]:
        """Iterate over the keys from `low` to `high`, both inclusive; None means unbounded."""
        return self._scan(low, high, reverse=False)

    def reverse_range(self, low: K | None, high: K | None) -> KeyValueIterator[K, V]:
        """Iterate over the keys from `high` down to `low`."""
        return self._scan(low, high, reverse=True)

    def all(self) -> KeyValueIterator[K, V]:
        """Iterate over all entries."""
        return self._scan(None, None, reverse=False)

    def reverse_all(self) -> KeyValueIterator[K, V]:
        """Iterate over all entries in reverse order."""
        return self._scan(None, None, reverse=True)

    def prefix_scan(self, prefix: P, serde: Serde[P] | None = None) -> KeyValueIterator[K, V]:
        """Iterate over keys whose bytes start with the bytes of `prefix` (KIP-614).

        `serde` serializes the prefix; the default is the serde of the keys.
        """
        start = (serde or self._key).serialize(prefix)  # type: ignore[arg-type]
        # Keys with this prefix lie between it and the next byte string of its length.
        after = int.from_bytes(b"\0" + start, "big") + 1
        end = None if after >> (8 * len(start)) else after.to_bytes(len(start), "big")
        entries = self._walk(start, end, reverse=False)
        return KeyValueIterator(self._read_entry(*entry) for entry in entries if entry[0] != end)

    def _scan(self, low: K | None, high: K | None, *, reverse: bool) -> KeyValueIterator[K, V]:
        bounds = self._key.to_bytes(low), self._key.to_bytes(high)
        return KeyValueIterator(
            self._read_entry(*entry) for entry in self._walk(*bounds, reverse=reverse)
        )

    def _walk(
        self, low: bytes | None, high: bytes | None, *, reverse: bool
    ) -> Iterable[tuple[bytes, bytes]]:
        return self._held.scan(low, high, reverse=reverse)

    def _read_entry(self, key: bytes, data: bytes) -> tuple[K, V]:
        return self._key.deserialize(key), self._value.deserialize(data)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record."""
        self._held.put(key, value)

    def remember(self) -> None:
        """Return None: the map holds the whole state."""

    def recall(self, remembered: None) -> None:
        """Do nothing: there is no state outside the map."""

    def approximate_num_entries(self) -> int:
        """Return the number of keys, which is exact here."""
        return len(self._held)

    def close(self) -> None:
        """Do nothing: no resource is open."""


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """One value with a timestamp per key (Kafka's TimestampedKeyValueStore); the store of a table."""

    versioned = False

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None = None,
        entries: OrderedBytes | None = None,
    ) -> None:
        super().__init__(name, key, timestamped(value), changelog, entries)
        self._write_plain = value.serialize
        self._get_forwarded = forwarding_reader(self._held)

    def get_forwarded(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return the value of a key without updates that a cache has not forwarded yet."""
        data = self._get_forwarded(self._to_key(key))
        return None if data is None else self._read(data)

    def put(self, key: K, value: ValueAndTimestamp[V] | None) -> None:
        """Set value and timestamp of a key; None removes it."""
        if value is None:
            super().put(key, None)
        else:
            self.put_at(key, value.value, value.timestamp)

    def put_at(self, key: K, value: V | None, timestamp: int) -> bool | None:
        """Set the value of a key as of a time; return True, as this is always the latest value."""
        key_bytes = self._to_key(key)
        data = None if value is None else self._write_plain(value)
        self._put(key_bytes, None if data is None else _TIME.pack(timestamp) + data)
        if self._changelog is not None:
            # A tombstone has no timestamp of its own: it gets the record's.
            self._changelog(key_bytes, data, None if data is None else timestamp)
        return True

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record; the value's timestamp is the record's."""
        self._held.put(key, None if value is None else _TIME.pack(timestamp) + value)


def timestamped(value: Serde[V]) -> Serde[ValueAndTimestamp[V]]:
    """Return a serde of values that are preceded by their timestamp."""

    def write(entry: ValueAndTimestamp[V]) -> bytes:
        return _TIME.pack(entry.timestamp) + value.serialize(entry.value)

    def read(data: bytes) -> ValueAndTimestamp[V]:
        return ValueAndTimestamp(value.deserialize(data[8:]), _TIME.unpack_from(data)[0])

    return Serde(write, read, f"timestamped({value!r})")

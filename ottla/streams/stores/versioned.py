"""Versioned stores (KIP-889): the earlier values of each key, within the history retention."""

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

from ottla.streams.model.durations import Instant, instant_ms
from ottla.streams.model.records import VersionedRecord
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes import Serde
from ottla.streams.stores.ordered import (
    EXPIRED_PUT,
    Changelog,
    MemoryBytes,
    OnExpired,
    OrderedBytes,
    ignore_expired,
)

K = TypeVar("K")
V = TypeVar("V")

_TIME = struct.Struct(">q")
_FOREVER = (1 << 63) - 1
_TOMBSTONE, _VALUE = b"\0", b"\1"


class VersionedKeyValueStore(SnakeCase, Generic[K, V]):
    """Versions of values by key (Kafka's VersionedKeyValueStore).

    As the store of a table, it reports which updates are older than the latest version.
    """

    versioned = True

    def __init__(
        self,
        name: str,
        key: Serde[K],
        value: Serde[V],
        changelog: Changelog | None = None,
        *,
        history_retention_ms: int,
        entries: OrderedBytes | None = None,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._changelog = changelog
        self._history_ms = history_retention_ms
        self._held = MemoryBytes() if entries is None else entries
        self._latest = -1
        self.on_expired: OnExpired = ignore_expired
        """Called for each put that is older than the history."""

    def put(self, key: K, value: V | None, timestamp: int) -> int | None:
        """Set the value of a key as of a time; return the end of its validity.

        Returns -1 if the value is the latest version, and None if the time is too old.
        """
        key_bytes = self._key.serialize(key)
        data = self._value.to_bytes(value)
        if self._changelog is not None:
            # Updates that are too old are logged, too: a restore drops them again.
            self._changelog(key_bytes, data, timestamp)
        valid_to = self._keep(key_bytes, data, timestamp)
        if valid_to is None:
            self.on_expired(EXPIRED_PUT)
        return valid_to

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Restore a changelog record."""
        self._keep(key, value, timestamp)

    def _keep(self, key_bytes: bytes, data: bytes | None, timestamp: int) -> int | None:
        if timestamp < self._latest - self._history_ms:
            return None
        self._latest = max(self._latest, timestamp)
        mark = _TOMBSTONE if data is None else _VALUE + data
        self._held.put(key_bytes + _TIME.pack(timestamp), mark)
        self._prune(key_bytes)
        later = [
            version_time
            for version_time, _ in self._versions(key_bytes)
            if version_time > timestamp
        ]
        return min(later) if later else -1

    def put_at(self, key: K, value: V | None, timestamp: int) -> bool | None:
        """Put a value; return True if it is now the latest version, None if it is too old."""
        valid_to = self.put(key, value, timestamp)
        return None if valid_to is None else valid_to == -1

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete the value of a key as of a time; return its previous value."""
        result = self.get_as_of(key, timestamp)
        return None if self.put(key, None, timestamp) is None else result

    def get(self, key: K, as_of: Instant | None = None) -> VersionedRecord[V] | None:
        """Return the latest value of a key, or its value at a time."""
        if as_of is not None:
            return self.get_as_of(key, instant_ms(as_of))
        for timestamp, data in self._versions(self._key.serialize(key)):
            if data is None:
                return None
            return VersionedRecord(self._value.deserialize(data), timestamp, None)
        return None

    def get_forwarded(self, key: K) -> VersionedRecord[V] | None:
        """Return the latest value of a key: a versioned store has no cache."""
        return self.get(key)

    def get_as_of(self, key: K, as_of: int) -> VersionedRecord[V] | None:
        """Return the value of a key at a time (ms); None if the time is before the retained
        history.
        """
        valid_to: int | None = None
        for timestamp, data in self._versions(self._key.serialize(key)):
            if timestamp <= as_of:
                too_old = valid_to is not None and as_of < self._latest - self._history_ms
                if data is None or too_old:
                    return None
                return VersionedRecord(self._value.deserialize(data), timestamp, valid_to)
            valid_to = timestamp
        return None

    def versions(
        self, key: K, time_from: int = 0, time_to: int = _FOREVER
    ) -> Iterator[VersionedRecord[V]]:
        """Iterate over the values of a key that were valid between two times (ms), latest first
        (KIP-968).
        """
        if time_to < self._latest - self._history_ms:
            return
        valid_to: int | None = None
        for timestamp, data in self._versions(self._key.serialize(key)):
            if valid_to is not None and valid_to <= time_from:
                return
            if timestamp <= time_to and data is not None:
                yield VersionedRecord(self._value.deserialize(data), timestamp, valid_to)
            valid_to = timestamp

    def _versions(self, key: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Iterate over the versions of a key, latest first; None is a tombstone."""
        low, high = key + _TIME.pack(0), key + _TIME.pack(_FOREVER)
        for stored, mark in self._held.scan(low, high, reverse=True):
            if len(stored) == len(low) and stored.startswith(key):
                timestamp = _TIME.unpack_from(stored, len(key))[0]
                yield timestamp, None if mark == _TOMBSTONE else mark[1:]

    def _prune(self, key: bytes) -> None:
        """Remove versions that ended before the retained history."""
        successor: int | None = None
        for timestamp, _ in list(self._versions(key)):
            if successor is not None and successor < self._latest - self._history_ms:
                self._held.put(key + _TIME.pack(timestamp), None)
            successor = timestamp

    def remember(self) -> int:
        """Return the latest time, for `recall`."""
        return self._latest

    def recall(self, remembered: int) -> None:
        """Restore the state that `remember` returned."""
        self._latest = remembered

    def close(self) -> None:
        """Do nothing: no resource is open."""

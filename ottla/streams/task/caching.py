"""The record cache: only the last update of a key is forwarded, when the task commits.

As in Kafka Streams, a cached store returns its latest values immediately. Its changelog and the
operators below the table get one update per key and commit, with the value of the last commit as
the old value. Keys that were added and deleted between two commits are not forwarded at all. Unlike
in Kafka, a join of tables does not read values that are not forwarded yet (docs/decisions/0016).

Not done: reads of entries that are past a store's retention, which Kafka's cache returns until they
are evicted; they expire as they do without a cache.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.streams.model.raw import TopicRecord
from ottla.streams.model.records import Change, Header, Record, RecordMetadata
from ottla.streams.serdes import Serde
from ottla.streams.stores.ordered import Changelog, OpenMap, OrderedBytes

CACHED_KINDS = ("timestamped_key_value", "timestamped_window", "session")
# Approximately the overhead that Kafka counts for an entry, in addition to key and value.
_ENTRY_BYTES = 96

CurrentRecord = tuple[RecordMetadata | None, TopicRecord | None, int, Sequence[Header]]
"""The record that is being processed: its metadata, bytes, timestamp and headers."""
Forward = Callable[[Record[Any, Any]], None]


class Dependencies(Protocol):
    """The parts of the task that the cache uses."""

    def current_record(self) -> CurrentRecord:
        """Return the record that is being processed."""

    def at(self, current: CurrentRecord) -> AbstractContextManager[None]:
        """Return a context in which that record is the current one."""


@dataclass
class _Update:
    """The last update of a key since the last commit."""

    committed: bytes | None
    """The value of the key at the last commit."""
    value: bytes | None
    timestamp: int
    current_record: CurrentRecord
    forward: Forward | None = None
    record: Record[Any, Any] | None = None


class RecordCache:
    """The caches of all tables of a task, which share one size limit."""

    def __init__(self, max_bytes: int, task: Dependencies) -> None:
        self.task = task
        self.size_bytes = 0
        self._max_bytes = max_bytes
        self._tables: dict[str, CachedTable] = {}

    def table(
        self, name: str, kind: str, changelog: Changelog | None, value: Serde[Any]
    ) -> "CachedTable":
        """Create and return the cache of a table's store; `value` is the serde of its values."""
        result = self._tables[name] = CachedTable(self, kind, changelog, value)
        return result

    def find(self, name: str) -> "CachedTable | None":
        """Return the cache of a store; None if it has no cache."""
        return self._tables.get(name)

    def make_room(self, table: "CachedTable") -> None:
        """Flush a table if the cache is over its size limit."""
        if self.size_bytes > self._max_bytes:
            table.flush()

    def flush(self) -> None:
        """Flush all updates, table by table."""
        for table in self._tables.values():
            table.flush()


class CachedTable:
    """The cache of one table: its updates since the last commit, the most recent last."""

    def __init__(
        self, cache: RecordCache, kind: str, changelog: Changelog | None, value: Serde[Any]
    ) -> None:
        self._cache = cache
        self._keeps_time = kind == "session"
        self._changelog = changelog
        self._value = value
        self._updates: dict[bytes, _Update] = {}
        # The updates of a running flush that have not been forwarded yet.
        self._flushing: dict[bytes, _Update] = {}
        self._last: _Update | None = None
        self.before: bytes | None = None
        """The previous value of the key that is being written."""
        self.sends_old_values = False
        """If the operators below need the values of the last commit."""
        self.has_listeners = False
        """If operators get its changes: a key that was added and deleted again is then not
        forwarded.
        """

    def opening(self, open_map: OpenMap) -> OpenMap:
        """Wrap the function that opens the store's maps, so that the cache gets the previous
        values.
        """
        return lambda name: _WriteObserver(self, open_map(name))

    def log(self, key: bytes, value: bytes | None, timestamp: int | None) -> None:
        """Cache a write of the store."""
        current = self._cache.task.current_record()
        time = current[2] if timestamp is None else timestamp
        before = self._updates.pop(key, None)
        committed = self.before if before is None else before.committed
        update = self._last = _Update(committed, value, time, current)
        if before is not None:
            self._cache.size_bytes -= _size(key, before)
            update.record = before.record
        self._cache.size_bytes += _size(key, update)
        self._updates[key] = update
        self.before = None

    def forward(self, record: Record[Any, Any], forward: Forward) -> None:
        """Cache the change that the table's operator forwards after a write."""
        update = self._last
        assert update is not None, "a table writes before it forwards"
        update.record, update.forward = record, forward
        self._cache.make_room(self)

    def flush(self) -> None:
        """Write the changelog and forward the changes."""
        self._flushing, self._updates = self._updates, {}
        self._last = None
        for key, update in list(self._flushing.items()):
            del self._flushing[key]
            self._cache.size_bytes -= _size(key, update)
            if self.has_listeners and update.value is None and update.committed is None:
                continue
            with self._cache.task.at(update.current_record):
                if self._changelog is not None:
                    self._changelog(key, update.value, update.timestamp)
                self._forward_change(update)

    def forwarded(self, key: bytes, latest: bytes | None) -> bytes | None:
        """Return the value of a key that the operators below have got; `latest` is the store's."""
        update = self._flushing.get(key) or self._updates.get(key)
        return latest if update is None or not self.has_listeners else update.committed

    def _forward_change(self, update: _Update) -> None:
        record = update.record
        if update.forward is None or record is None:
            return
        change: Change[Any] = record.value
        if change.new_value is None and not self._keeps_time:
            record = record.with_timestamp(update.current_record[2])
        changed = Change(change.new_value, self._old_value(update), change.is_latest)
        update.forward(record.with_value(changed).with_headers(update.current_record[3]))

    def _old_value(self, update: _Update) -> Any:
        """Return the value of the key at the last commit; the last update may have replaced a later
        one.
        """
        committed = update.committed if self.sends_old_values else None
        if committed is None:
            return None
        # Values of tables other than sessions begin with their timestamp.
        return self._value.deserialize(committed if self._keeps_time else committed[8:])


def _size(key: bytes, update: _Update) -> int:
    return _ENTRY_BYTES + len(key) + len(update.value or b"")


class _WriteObserver:
    """A map that keeps the previous value of a key before each write."""

    def __init__(self, table: CachedTable, entries: OrderedBytes) -> None:
        self._table = table
        self._held = entries

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        return self._held.get(key)

    def get_forwarded(self, key: bytes) -> bytes | None:
        """Return the value of a key at its last flush."""
        return self._table.forwarded(key, self._held.get(key))

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        self._table.before = self._held.get(key)
        self._held.put(key, value)

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the keys from `low` to `high`, inclusive, as they are at the start."""
        return self._held.scan(low, high, reverse=reverse)

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all keys; concurrent changes may or may not be visible."""
        return self._held.walk()

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value; None if the map is empty."""
        return self._held.first()

    def clear(self) -> None:
        """Remove all keys."""
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)

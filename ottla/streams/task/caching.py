"""The record cache: of several updates of a key only the last one goes on, when the task commits.

As in Kafka Streams a cached store answers with its latest values at once, while its changelog and the
operators below the table hear of a key once a commit, with the value that the key had at the last one. What was
added and removed in between is not heard of at all.

Not done: answers with what is past a store's retention, which Kafka's cache gives until the entry is evicted: it is
forgotten, as without a cache.
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
# What Kafka counts for an entry besides its key and value, about.
_ENTRY_BYTES = 96

Place = tuple[RecordMetadata | None, TopicRecord | None, int, Sequence[Header]]
"""The record that is being processed: where it was read, as it was read, its time and its headers."""
Forward = Callable[[Record[Any, Any]], None]


class Dependencies(Protocol):
    """What the cache asks of its task."""

    def place(self) -> Place:
        """Return which record is being processed."""

    def at(self, place: Place) -> AbstractContextManager[None]:
        """Go on as if that record were being processed."""


@dataclass
class _Update:
    """The last update of a key since the last commit."""

    committed: bytes | None
    """What the key had at the last commit."""
    value: bytes | None
    timestamp: int
    place: Place
    forward: Forward | None = None
    record: Record[Any, Any] | None = None


class RecordCache:
    """The caches of a task's tables, which share their room."""

    def __init__(self, max_bytes: int, task: Dependencies) -> None:
        self.task = task
        self.size_bytes = 0
        self._max_bytes = max_bytes
        self._tables: dict[str, CachedTable] = {}

    def table(
        self, name: str, kind: str, changelog: Changelog | None, value: Serde[Any]
    ) -> "CachedTable":
        """Return the cache of a table's store, whose values have this serde."""
        found = self._tables[name] = CachedTable(self, kind, changelog, value)
        return found

    def find(self, name: str) -> "CachedTable | None":
        """Return the cache of a store; None if it has none."""
        return self._tables.get(name)

    def make_room(self, table: "CachedTable") -> None:
        """Flush a table whose updates do not fit any more."""
        if self.size_bytes > self._max_bytes:
            table.flush()

    def flush(self) -> None:
        """Let all updates go on, table by table."""
        for table in self._tables.values():
            table.flush()


class CachedTable:
    """The cache of one table: its updates since the last commit, the last one last."""

    def __init__(
        self, cache: RecordCache, kind: str, changelog: Changelog | None, value: Serde[Any]
    ) -> None:
        self._cache = cache
        self._keeps_time = kind == "session"
        self._changelog = changelog
        self._value = value
        self._updates: dict[bytes, _Update] = {}
        self._last: _Update | None = None
        self.before: bytes | None = None
        """What the key that was just written had before."""
        self.sends_old_values = False
        """Whether the operators below ask for the values that keys had at the last commit."""
        self.has_listeners = False
        """Whether operators hear of its changes: they need not hear of what was added and removed again."""

    def opening(self, open_map: OpenMap) -> OpenMap:
        """Return how the store opens its maps: so that the cache knows what was there."""
        return lambda name: _Noting(self, open_map(name))

    def log(self, key: bytes, value: bytes | None, timestamp: int | None) -> None:
        """Take a write of the store."""
        place = self._cache.task.place()
        time = place[2] if timestamp is None else timestamp
        before = self._updates.pop(key, None)
        committed = self.before if before is None else before.committed
        update = self._last = _Update(committed, value, time, place)
        if before is not None:
            self._cache.size_bytes -= _size(key, before)
            update.record = before.record
        self._cache.size_bytes += _size(key, update)
        self._updates[key] = update
        self.before = None

    def forward(self, record: Record[Any, Any], forward: Forward) -> None:
        """Take the change that the table's operator forwards after a write."""
        update = self._last
        assert update is not None, "a table writes before it forwards"
        update.record, update.forward = record, forward
        self._cache.make_room(self)

    def flush(self) -> None:
        """Write the changelog and forward the changes."""
        updates, self._updates = self._updates, {}
        self._last = None
        for key, update in updates.items():
            self._cache.size_bytes -= _size(key, update)
            if self.has_listeners and update.value is None and update.committed is None:
                continue
            with self._cache.task.at(update.place):
                if self._changelog is not None:
                    self._changelog(key, update.value, update.timestamp)
                self._go_on(update)

    def _go_on(self, update: _Update) -> None:
        record = update.record
        if update.forward is None or record is None:
            return
        change: Change[Any] = record.value
        if change.new_value is None and not self._keeps_time:
            record = record.with_timestamp(update.place[2])
        changed = Change(change.new_value, self._old_value(update), change.is_latest)
        update.forward(record.with_value(changed).with_headers(update.place[3]))

    def _old_value(self, update: _Update) -> Any:
        """Return what the key had at the last commit, which is not what its last update found there."""
        committed = update.committed if self.sends_old_values else None
        if committed is None:
            return None
        # Other tables than those of sessions keep a value behind its time.
        return self._value.deserialize(committed if self._keeps_time else committed[8:])


def _size(key: bytes, update: _Update) -> int:
    return _ENTRY_BYTES + len(key) + len(update.value or b"")


class _Noting:
    """A map that notes what a key had before it is written."""

    def __init__(self, table: CachedTable, held: OrderedBytes) -> None:
        self._table = table
        self._held = held

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        return self._held.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        self._table.before = self._held.get(key)
        self._held.put(key, value)

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Walk the keys from `low` to `high`, both included, as they are when the walk starts."""
        return self._held.scan(low, high, reverse=reverse)

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Walk all keys; what changes on the way may be seen or not."""
        return self._held.walk()

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value; None if there is none."""
        return self._held.first()

    def clear(self) -> None:
        """Remove all keys."""
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)

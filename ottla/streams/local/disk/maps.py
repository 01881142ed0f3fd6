"""An ordered map of bytes over a database: the writes since the last commit are in memory.

Entries that were read or written lately are cached, up to some megabytes for each map.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ottla.streams.stores.ordered import MemoryBytes

# A map has this much twice: the entries of late, and those before.
CACHED_BYTES = 4 << 20
# Approximately the memory of an entry besides its key and value.
ENTRY_BYTES = 150


class EntryReader(Protocol):
    """The reads of a database that a map uses; `number` is the number of the map."""

    def get(self, number: int, key: bytes) -> bytes | None:
        """Return the stored value of a key of a map."""

    def rows(
        self, number: int, low: bytes | None, high: bytes | None, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return the stored entries from `low` to `high`, both inclusive."""

    def after(self, number: int, key: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the stored entries after a key; None: from the first one."""

    def count(self, number: int) -> int:
        """Return the number of stored entries of a map."""


class MapChanges(NamedTuple):
    """The writes of a map since the last batch; written entries are in the order of their keys."""

    is_cleared: bool
    removed: set[bytes]
    written: list[tuple[bytes, bytes]]


class PersistentMap:
    """A map of a database; it has the methods of OrderedBytes."""

    def __init__(self, database: EntryReader, number: int) -> None:
        self.number = number
        self.uncommitted_bytes = 0
        """The size of the writes since the last batch, approximately."""
        self.is_dropped = False
        """True if the map was cleared, and is empty since: an expired segment."""
        self._database = database
        self._written = MemoryBytes()
        # Keys without a value since the last batch; the database may have them.
        self._removed: set[bytes] = set()
        # True if nothing in the database counts any more.
        self._is_cleared = False
        # The stored values of keys, None included; the second is dropped when the first is full.
        self._cached: dict[bytes, bytes | None] = {}
        self._cached_before: dict[bytes, bytes | None] = {}
        self._cached_bytes = 0
        # All stored keys up to this one were removed or written since the last batch.
        self._skipped: bytes | None = None
        # The number of keys; None until the first call of len.
        self._count: int | None = None

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        value = self._written.get(key)
        if value is not None:
            return value
        if self._is_cleared or key in self._removed:
            return None
        cached = self._cached
        if key in cached:
            return cached[key]
        before = self._cached_before
        value = before[key] if key in before else self._database.get(self.number, key)
        self._cache(key, value)
        return value

    def _cache(self, key: bytes, value: bytes | None) -> None:
        self._cached_bytes += len(key) + len(value or b"") + ENTRY_BYTES
        if self._cached_bytes > CACHED_BYTES:
            self._cached_before, self._cached, self._cached_bytes = self._cached, {}, 0
        self._cached[key] = value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        if self._count is not None:
            self._count += (value is not None) - (self.get(key) is not None)
        self._written.put(key, value)
        if value is None:
            self._removed.add(key)
            self.uncommitted_bytes += len(key) + ENTRY_BYTES
        else:
            self._removed.discard(key)
            self.is_dropped = False
            self.uncommitted_bytes += len(key) + len(value) + ENTRY_BYTES

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a snapshot of the keys from `low` to `high`, both inclusive."""
        written = list(self._written.scan(low, high, reverse=reverse))
        if self._is_cleared:
            return iter(written)
        stored = self._database.rows(self.number, low, high, reverse=reverse)
        if self._removed:
            stored = [row for row in stored if row[0] not in self._removed]
        if not written:
            return iter(stored)
        merged = dict(stored)
        merged.update(written)
        return iter(sorted(merged.items(), reverse=reverse))

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all keys; changes during the iteration are not seen."""
        return self.scan()

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value, or None if the map is empty."""
        written = self._written.first()
        stored = None if self._is_cleared else self._first_stored(written)
        if stored is None or (written is not None and written[0] < stored[0]):
            return written
        return stored

    def _first_stored(self, written: tuple[bytes, bytes] | None) -> tuple[bytes, bytes] | None:
        for key, value in self._database.after(self.number, self._skipped):
            if written is not None and key > written[0]:
                return None
            if key not in self._removed and self._written.get(key) is None:
                return key, value
            self._skipped = key
        return None

    def clear(self) -> None:
        """Remove all keys."""
        self._written.clear()
        self._removed.clear()
        self._forget()
        self._is_cleared = self.is_dropped = True
        self.uncommitted_bytes = ENTRY_BYTES
        if self._count is not None:
            self._count = 0

    @property
    def cached_count(self) -> int:
        """The number of stored entries in memory."""
        return len(self._cached) + len(self._cached_before)

    def _forget(self) -> None:
        self._cached, self._cached_before, self._cached_bytes = {}, {}, 0
        self._skipped = None

    def __len__(self) -> int:
        """Return the number of keys."""
        if self._count is None:
            stored = 0 if self._is_cleared else self._database.count(self.number)
            self._count = stored if not self.uncommitted_bytes else sum(1 for _ in self.scan())
        return self._count

    def changes(self) -> MapChanges:
        """Return the writes since the last batch."""
        if not self.uncommitted_bytes:
            return MapChanges(is_cleared=False, removed=set(), written=[])
        return MapChanges(self._is_cleared, self._removed, list(self._written.walk()))

    def note_saved(self) -> None:
        """Note that the database has the writes since the last batch."""
        if not self.uncommitted_bytes:
            return
        if self._is_cleared:
            self._forget()
        for key, value in self._written.walk():
            self._cache(key, value)
        for key in self._removed:
            self._cached[key] = None
        # Readers in other threads find each key in the cache or here.
        self._is_cleared, self._skipped, self.uncommitted_bytes = False, None, 0
        self._written.clear()
        self._removed = set()

"""The state of a task: the maps of its stores, restored from changelogs before processors see it.

Maps are in memory, or in the task's database on disk. The writes of a commit are added to the
database after the commit, with the changelog offsets that they cover: a crash between the two loses
no more than the database's view of the last commit, which is read from the changelogs. State is
never ahead of what was committed.

Stores write their changelogs in Kafka's formats. The buffers of suppress, of joins with grace and
of outer joins have no such format here: each put to one of their maps is a record whose key begins
with the number of the map.
"""

import time
from collections.abc import Callable
from typing import Any

from ottla.client.records import TopicPartition
from ottla.streams.local.disk.database import SavedState, StateDatabase
from ottla.streams.local.layout import TaskId
from ottla.streams.model.errors import StateDamaged
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StateStore, StoreBuilder
from ottla.streams.stores.ordered import MemoryBytes, OpenMap, OrderedBytes

LogPut = Callable[[str, bytes, bytes | None], None]
"""A function that writes a put of a buffer: the store, the key and the value in its changelog."""
# The size of uncommitted writes from which they are committed, or saved, at once.
_UNCOMMITTED_BYTES = 64 << 20
_BUFFERS = {
    "suppress_buffer": ("order", "keys"),
    "join_buffer": ("held",),
    "outer_join": ("waiting",),
}


class LoggedMap:
    """A map of a buffer that logs each put."""

    def __init__(
        self, entries: OrderedBytes, log: Callable[[bytes, bytes | None], None], number: int
    ) -> None:
        self._entries = entries
        self._log = log
        self._prefix = bytes([number])
        self.restore = entries.put
        """Set the value of a key without logging."""
        self.get, self.scan, self.walk = entries.get, entries.scan, entries.walk
        self.first, self.clear = entries.first, entries.clear

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._entries)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key, and log it; None removes it."""
        self._entries.put(key, value)
        self._log(self._prefix + key, value)


class TaskState:
    """The maps of a task's stores by name; `shared` opens the maps of global stores.

    With a database, the maps of the stores in `on_disk` are in it.
    """

    def __init__(
        self,
        task: TaskId,
        shared: OpenMap,
        global_stores: frozenset[str],
        database: StateDatabase | None = None,
        on_disk: frozenset[str] = frozenset(),
    ) -> None:
        self.task = task
        self.positions: dict[TopicPartition, int] = {}
        """The offset after the last record of each changelog that the maps contain."""
        self._shared = shared
        self._global_stores = global_stores
        self._database = database
        self._on_disk = on_disk if database is not None else frozenset()
        self._maps: dict[str, OrderedBytes] = {}
        self._buffers: dict[str, tuple[LoggedMap, ...]] = {}
        self._stores: dict[str, Any] = {}
        # The changelogs of stores on disk, and the positions of the last batch.
        self._saved_changelogs: set[TopicPartition] = set()
        self._saved: dict[str, int] = {} if database is None else database.saved.positions

    @property
    def saved_positions(self) -> dict[str, int]:
        """The positions in changelogs that the state on disk has, by topic."""
        return self._saved

    def prepare(self, builder: StoreBuilder, defaults: DefaultSerdes, log: LogPut) -> None:
        """Make the maps of a store with a changelog, with its state on disk."""
        name = builder.name
        if builder.kind not in _BUFFERS:
            store = self._stores[name] = builder.build(defaults, None, self.open_map)
            self._recall(name, store)
            return

        def logged(key: bytes, value: bytes | None) -> None:
            log(name, key, value)

        maps = []
        for number, part in enumerate(_BUFFERS[builder.kind]):
            full_name = f"{name}/{part}"
            maps.append(LoggedMap(self.open_map(full_name), logged, number))
            self._maps[full_name] = maps[-1]
        self._buffers[name] = tuple(maps)

    def begin_at(self, key: TopicPartition, store: str, first: int) -> None:
        """Note where to restore a store from: the position on disk, or the first offset."""
        position = first
        if store in self._on_disk:
            self._saved_changelogs.add(key)
            position = max(first, self._saved.get(key.topic, first))
        self.positions.setdefault(key, position)

    def _recall(self, name: str, store: StateStore) -> None:
        if self._database is None or name not in self._on_disk:
            return
        remembered = self._database.saved.remembered.get(name)
        if remembered is not None:
            store.recall(remembered)

    def open_map(self, name: str) -> OrderedBytes:
        """Return the map of a store; equal names are the same map."""
        store = name.partition("/")[0]
        if store in self._global_stores:
            return self._shared(name)
        entries = self._maps.get(name)
        if entries is None:
            database = self._database if store in self._on_disk else None
            entries = MemoryBytes() if database is None else database.open_map(name)
            self._maps[name] = entries
        return entries

    def restore(self, store: str, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of a store's changelog."""
        if store in self._buffers:
            self._buffers[store][key[0]].restore(key[1:], value)
        else:
            self._stores[store].restore(key, value, timestamp)

    def store(self, name: str) -> Any | None:
        """Return a store with a changelog, as far as it was restored; None for other names."""
        return self._stores.get(name)

    def hand_over(self, stores: dict[str, StateStore]) -> None:
        """Give the stores of the running task what the restored ones know besides their maps."""
        for name, store in stores.items():
            if name in self._stores:
                store.recall(self._stores[name].remember())
            elif name not in self._buffers:
                self._recall(name, store)
        self._stores = {name: row for name, row in stores.items() if name not in self._buffers}

    def save(self) -> None:
        """Write everything that was committed or restored to disk, in one batch."""
        if self._database is None:
            return
        positions = {key.topic: self.positions[key] for key in self._saved_changelogs}
        if positions == self._saved and not self._database.uncommitted_bytes:
            return
        remembered = {
            name: store.remember() for name, store in self._stores.items() if name in self._on_disk
        }
        fingerprint = self._database.saved.fingerprint
        self._database.save(SavedState(fingerprint, positions, remembered, _now_ms()))
        self._saved = positions

    def save_if_large(self) -> bool:
        """Write what was restored to disk if it is large; return True if it was."""
        is_large = self.is_large
        if is_large:
            self.save()
        return is_large

    @property
    def is_large(self) -> bool:
        """True if the writes since the last batch use much memory."""
        return self._database is not None and self._database.uncommitted_bytes > _UNCOMMITTED_BYTES

    @property
    def damage(self) -> str:
        """The damage that was found in the state on disk; empty if none was."""
        return "" if self._database is None else self._database.damage

    def check(self) -> None:
        """Raise StateDamaged if a read has failed, even if a processor has handled its error."""
        if self.damage:
            raise StateDamaged(self.damage)

    def close(self) -> None:
        """Close the database; writes since the last batch are lost."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

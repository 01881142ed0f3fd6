"""The state of a task: the maps of its stores, restored from changelogs before processors see it.

Stores write their changelogs in Kafka's formats. The buffers of suppress, of joins with grace and
of outer joins have no such format here: each put to one of their maps is a record whose key begins
with the number of the map.
"""

from collections.abc import Callable
from typing import Any

from ottla.streams.local.layout import TaskId
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StateStore, StoreBuilder
from ottla.streams.stores.ordered import MemoryBytes, OpenMap, OrderedBytes

LogPut = Callable[[str, bytes, bytes | None], None]
"""A function that writes a put of a buffer: the store, the key and the value in its changelog."""
_BUFFERS = {
    "suppress_buffer": ("order", "keys"),
    "join_buffer": ("held",),
    "outer_join": ("waiting",),
}


class LoggedMap(MemoryBytes):
    """A map of a buffer that logs each put."""

    def __init__(self, log: Callable[[bytes, bytes | None], None], number: int) -> None:
        super().__init__()
        self._log = log
        self._prefix = bytes([number])

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key, and log it; None removes it."""
        super().put(key, value)
        self._log(self._prefix + key, value)

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key without logging."""
        super().put(key, value)


class TaskState:
    """The maps of a task's stores by name; `shared` opens the maps of global stores."""

    def __init__(self, task: TaskId, shared: OpenMap, global_stores: frozenset[str]) -> None:
        self.task = task
        self._shared = shared
        self._global_stores = global_stores
        self._maps: dict[str, OrderedBytes] = {}
        self._buffers: dict[str, tuple[LoggedMap, ...]] = {}
        self._stores: dict[str, Any] = {}

    def prepare(self, builder: StoreBuilder, defaults: DefaultSerdes, log: LogPut) -> None:
        """Make the maps of a store with a changelog, empty."""
        name = builder.name
        if builder.kind not in _BUFFERS:
            self._stores[name] = builder.build(defaults, None, self.open_map)
            return

        def logged(key: bytes, value: bytes | None) -> None:
            log(name, key, value)

        maps = [LoggedMap(logged, number) for number in range(len(_BUFFERS[builder.kind]))]
        self._buffers[name] = tuple(maps)
        for part, entries in zip(_BUFFERS[builder.kind], maps, strict=True):
            self._maps[f"{name}/{part}"] = entries

    def open_map(self, name: str) -> OrderedBytes:
        """Return the map of a store; equal names are the same map."""
        if name.partition("/")[0] in self._global_stores:
            return self._shared(name)
        entries = self._maps.get(name)
        if entries is None:
            entries = self._maps[name] = MemoryBytes()
        return entries

    def restore(self, store: str, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of a store's changelog."""
        if store in self._buffers:
            self._buffers[store][key[0]].restore(key[1:], value)
        else:
            self._stores[store].restore(key, value, timestamp)

    def hand_over(self, stores: dict[str, StateStore]) -> None:
        """Give the stores of the running task what the restored ones know besides their maps."""
        for name, restored in self._stores.items():
            stores[name].recall(restored.remember())

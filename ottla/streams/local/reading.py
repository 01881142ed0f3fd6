"""Reads of the tasks' own stores by any thread, while the tasks run.

A reader waits until the current record is processed: a range contains all effects of a record or
none. It reads uncommitted state, as in Kafka Streams.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.streams.local.replicas.standbys import Standby
from ottla.streams.local.running import RunningTask, StateGate
from ottla.streams.model.errors import InvalidStateStoreError
from ottla.streams.stores.iterators import KeyValueIterator


class GuardedStore:
    """A store of a running task, for reads between two records."""

    def __init__(self, name: str, store: Any, gate: StateGate) -> None:
        self._name, self._store, self._gate = name, store, gate

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the store, which decides the queries that it supports."""
        return type(self._store)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return a method of the store that runs while the task does not change it."""

        def read(*arguments: Any) -> Any:
            with self._gate.reading():
                if self._gate.is_closed:
                    raise migrated(self._name)
                result = getattr(self._store, method)(*arguments)
                return list(result) if isinstance(result, KeyValueIterator) else result

        return read


class LocalStores(Sequence[Any]):
    """The stores of this name in the tasks that run now; an index is a partition.

    `standbys` returns replicas, whose stores are read if no task here has the partition.
    """

    def __init__(
        self,
        name: str,
        running: Callable[[], Sequence[RunningTask]],
        standbys: Callable[[], Sequence[Standby]] = list,
    ) -> None:
        self._name, self._running, self._standbys = name, running, standbys

    def _found(self) -> dict[int, GuardedStore]:
        name = self._name
        found = {
            row.state.task.partition: GuardedStore(name, store, row.gate)
            for row in self._standbys()
            if (store := row.state.store(name)) is not None
        }
        found |= {
            task.id.partition: GuardedStore(name, task.task.stores[name], task.gate)
            for task in self._running()
            if name in task.task.stores
        }
        if not found:
            raise migrated(self._name)
        return dict(sorted(found.items()))

    def __len__(self) -> int:
        """Return the number of partitions up to the last one in this process."""
        return max(self._found()) + 1

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the stores in this process."""
        return iter(self._found().values())

    def __getitem__(self, partition: Any) -> Any:
        """Return the store of a partition; InvalidStateStoreError if it is in another process."""
        store = self._found().get(partition)
        if store is None:
            raise migrated(f"{self._name}, partition {partition},")
        return store


def migrated(name: str) -> InvalidStateStoreError:
    """Return the error of a store that no task of this process has."""
    return InvalidStateStoreError(
        f"the state store {name} is not in this process now: its task may have moved to another "
        "instance, or is being restored. Retry, or read the whole state with is_local=False"
    )

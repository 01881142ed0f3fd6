"""Standby replicas and warm-up replicas: states of tasks that follow the changelogs continuously.

The task can continue here with only the end of the changelog to restore. With exactly_once_v2 the
reader stops before an open transaction.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from ottla.client.records import TopicPartition
from ottla.streams.application.state_listeners import StandbyUpdateListener, SuspendReason
from ottla.streams.local.inputs import Arrived, Ended, PartitionReader
from ottla.streams.local.layout import TaskId
from ottla.streams.local.running import StateGate
from ottla.streams.local.state import TaskState
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.user_errors import UsersErrors

_STEP_RECORDS = 2_000


@dataclass(frozen=True)
class Standby:
    """A state that follows its changelogs; readers of its stores pass the gate."""

    state: TaskState
    stores: Mapping[TopicPartition, str]
    gate: StateGate = field(default_factory=StateGate)


class Standbys:
    """The standby tasks of a worker. For one thread."""

    def __init__(
        self,
        open_reader: Callable[[], PartitionReader],
        listener: StandbyUpdateListener | None = None,
    ) -> None:
        self._open_reader = open_reader
        self._listener = listener or StandbyUpdateListener()
        self._reader: PartitionReader | None = None
        self._standbys: dict[TaskId, Standby] = {}
        self._owners: dict[TopicPartition, Standby] = {}

    @property
    def tasks(self) -> frozenset[TaskId]:
        """The tasks that have a state here."""
        return frozenset(self._standbys)

    def states(self) -> list[TaskState]:
        """Return the states; other threads may call it."""
        return [row.state for row in list(self._standbys.values())]

    def replicas(self) -> list[Standby]:
        """Return the replicas; other threads may call it, and read the stores."""
        return list(self._standbys.values())

    def position(self, task: TaskId) -> int:
        """Return the sum of a task's positions in its changelogs."""
        standby = self._standbys[task]
        return sum(standby.state.positions[key] for key in standby.stores)

    def lag(self, task: TaskId) -> int | None:
        """Return how far a task is behind its changelogs; None before the brokers have responded."""
        standby, reader = self._standbys[task], self._reader
        ends = {key: reader.end(key) if reader else None for key in standby.stores}
        lags = [end - standby.state.positions[key] for key, end in ends.items() if end is not None]
        return sum(lags) if len(lags) == len(ends) else None

    def add(self, state: TaskState, stores: Mapping[TopicPartition, str]) -> None:
        """Follow the changelogs of a task from the positions of its state."""
        standby = self._standbys[state.task] = Standby(state, stores)
        if not stores:
            return
        with _listening("start"):
            for key, store in stores.items():
                self._listener.on_update_start(key, store, state.positions[key])
        if self._reader is None:
            self._reader = self._open_reader()
        self._owners |= dict.fromkeys(stores, standby)
        self._reader.add({key: state.positions[key] for key in stores})

    def take(self, task: TaskId, reason: SuspendReason) -> TaskState | None:
        """Stop following a task, and return its state; None if it is not here."""
        standby = self._standbys.pop(task, None)
        if standby is None:
            return None
        with _listening("end"):
            for key, store in standby.stores.items():
                position = standby.state.positions[key]
                self._listener.on_update_suspended(key, store, position, self._end(key), reason)
        if self._reader is not None:
            self._reader.remove(standby.stores)
        for key in standby.stores:
            del self._owners[key]
        with standby.gate.writing():
            standby.gate.is_closed = True
        return standby.state

    def step(self, timeout_s: float = 0.0) -> int:
        """Read some records; return their number. Raises StateDamaged."""
        if self._reader is None or not self._reader.assigned:
            return 0
        rows = self._reader.poll(_STEP_RECORDS, timeout_s)
        counts: Counter[TopicPartition] = Counter()
        for key, arrived in groupby(rows, lambda row: row.key):
            standby = self._owners[key]
            with standby.gate.writing():
                counts[key] += _apply(standby, key, arrived)
        counts = +counts
        self._report(counts)
        for standby in self._standbys.values():
            if standby.state.is_large:
                with standby.gate.writing():
                    standby.state.save()
        return len(rows)

    def _report(self, counts: Counter[TopicPartition]) -> None:
        with _listening("batch"):
            for key, count in counts.items():
                standby = self._owners[key]
                store, task = standby.stores[key], str(standby.state.task)
                last = standby.state.positions[key] - 1
                self._listener.on_batch_loaded(key, store, task, last, count, self._end(key))

    def _end(self, key: TopicPartition) -> int:
        end = None if self._reader is None else self._reader.end(key)
        return -1 if end is None else end

    def damaged(self) -> list[TaskId]:
        """Return the tasks whose state on disk cannot be read."""
        return [task for task, row in self._standbys.items() if row.state.damage]

    def save(self) -> None:
        """Write what was read to disk. Raises StateDamaged."""
        for standby in self._standbys.values():
            with standby.gate.writing():
                standby.state.save()

    def close(self) -> None:
        """Close the reader; the states are taken before."""
        if self._reader is not None:
            self._reader.close()


def _apply(standby: Standby, key: TopicPartition, rows: Iterable[Arrived | Ended]) -> int:
    """Apply what was read of a changelog; return the number of records."""
    count, store, state = 0, standby.stores[key], standby.state
    for row in rows:
        if isinstance(row, Arrived):
            record = row.record
            state.restore(store, record.key or b"", record.value, record.timestamp)
            state.positions[key] = record.offset + 1
            count += 1
        else:
            state.positions[key] = row.offset
    return count


def _listening(event: str) -> UsersErrors:
    return UsersErrors(f"The standby listener failed at the {event} of an update:", StreamsError)

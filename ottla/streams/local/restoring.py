"""Restores the state of tasks from changelogs, in steps between the records of other tasks.

The end of a changelog is its high watermark when the task was assigned, and with exactly_once_v2
the reader stops before an open transaction: a task starts when the commits of its last owner are
complete.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.client.records import TopicPartition
from ottla.streams.application.state_listeners import StateRestoreListener
from ottla.streams.local.inputs import Arrived, Ended, PartitionReader
from ottla.streams.local.layout import TaskId
from ottla.streams.local.state import TaskState
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.user_errors import UsersErrors

_log = logging.getLogger(__name__)
_STEP_RECORDS = 2_000


@dataclass
class _Restore:
    state: TaskState
    ends: dict[TopicPartition, int]
    """The changelog partitions that are not read to their ends yet."""
    stores: Mapping[TopicPartition, str]
    total: int
    """The number of offsets between the positions at the start and the ends."""
    records: Counter[TopicPartition] = field(default_factory=Counter)
    """The number of restored records of each changelog."""

    @property
    def left(self) -> int:
        ends = dict(self.ends)
        return sum(max(0, end - self.state.positions[key]) for key, end in ends.items())


class Restorer:
    """The tasks whose state is being restored. For one thread."""

    def __init__(
        self,
        open_reader: Callable[[], PartitionReader],
        listener: StateRestoreListener | None = None,
    ) -> None:
        self._open_reader = open_reader
        self._listener = listener or StateRestoreListener()
        self._reader: PartitionReader | None = None
        self._restores: dict[TaskId, _Restore] = {}
        self._owners: dict[TopicPartition, TaskId] = {}

    @property
    def is_busy(self) -> bool:
        """True while a task is being restored."""
        return bool(self._restores)

    @property
    def left(self) -> int:
        """The number of offsets that are left to be read."""
        return sum(restore.left for restore in list(self._restores.values()))

    @property
    def total(self) -> int:
        """The number of offsets that these restores read."""
        return sum(restore.total for restore in list(self._restores.values()))

    def begin(
        self,
        state: TaskState,
        stores: Mapping[TopicPartition, str],
        spans: Mapping[TopicPartition, tuple[int, int]],
    ) -> None:
        """Restore a task; `spans` has the first and the end offset of each changelog partition.

        Records that its state on disk has, or that it has read as a standby, are not read again.
        """
        for key, (first, _) in spans.items():
            state.begin_at(key, stores[key], first)
        ends = {key: end for key, (_, end) in spans.items() if end > state.positions[key]}
        total = sum(end - state.positions[key] for key, end in ends.items())
        restore = _Restore(state, ends, stores, total)
        self._restores[state.task] = restore
        with _listening("start"):
            for key, (_, end) in spans.items():
                self._listener.on_restore_start(key, stores[key], state.positions[key], end)
                if key not in ends:
                    self._listener.on_restore_end(key, stores[key], 0)
        if not ends:
            return
        if self._reader is None:
            self._reader = self._open_reader()
        for key in ends:
            self._owners[key] = state.task
        self._reader.add({key: state.positions[key] for key in ends})

    def cancel(self, task: TaskId) -> None:
        """Stop restoring a task."""
        restore = self._restores.pop(task, None)
        if restore is not None and self._reader is not None:
            self._reader.remove(restore.ends)
        if restore is not None:
            with _listening("suspension"):
                for key in restore.ends:
                    count = restore.records[key]
                    self._listener.on_restore_suspended(key, restore.stores[key], count)

    def step(self, timeout_s: float) -> list[TaskState]:
        """Read some records; return the states that are complete."""
        if self._reader is not None and self._reader.assigned:
            self._apply(self._reader.poll(_STEP_RECORDS, timeout_s))
        for restore in self._restores.values():
            restore.state.save_if_large()
        done = [task for task, restore in self._restores.items() if not restore.ends]
        return [self._completed(self._restores.pop(task)) for task in done]

    def _apply(self, rows: list[Arrived | Ended]) -> None:
        counts: Counter[TopicPartition] = Counter()
        for row in rows:
            restore = self._restores.get(self._owners[row.key])
            if restore is None:
                continue
            if isinstance(row, Arrived):
                record = row.record
                restore.state.restore(
                    restore.stores[row.key], record.key or b"", record.value, record.timestamp
                )
                restore.state.positions[row.key] = record.offset + 1
                counts[row.key] += 1
            else:
                restore.state.positions[row.key] = row.offset
        for key in dict.fromkeys(row.key for row in rows):
            restore = self._restores.get(self._owners[key])
            if restore is not None:
                self._advance(restore, key, counts[key])

    def _completed(self, restore: _Restore) -> TaskState:
        restore.state.save()
        _log.info("Task %s: restored records: %d.", restore.state.task, restore.records.total())
        return restore.state

    def _advance(self, restore: _Restore, key: TopicPartition, count: int) -> None:
        position, store = restore.state.positions[key], restore.stores[key]
        restore.records[key] += count
        if count:
            with _listening("batch"):
                self._listener.on_batch_restored(key, store, position - 1, count)
        if key in restore.ends and position >= restore.ends[key]:
            del restore.ends[key]
            assert self._reader is not None
            self._reader.remove([key])
            with _listening("end"):
                self._listener.on_restore_end(key, store, restore.records[key])

    def close(self) -> None:
        """Close the reader of the changelogs."""
        if self._reader is not None:
            self._reader.close()


def _listening(event: str) -> UsersErrors:
    return UsersErrors(f"The restore listener failed at the {event} of a restore:", StreamsError)

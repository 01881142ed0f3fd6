"""A task that runs: its input partitions, when it may process, and the offsets that it commits.

As in Kafka (KIP-695), a task with several input partitions processes the record with the smallest
timestamp only if each partition has a record, or is known to have been read to its end, and then
waits `max.task.idle.ms` for more.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ottla.base.errors import ApiError
from ottla.client.records import TopicPartition
from ottla.streams.layout.layout import SubTopology
from ottla.streams.local import clocks
from ottla.streams.local.layout import TaskId
from ottla.streams.local.state import TaskState
from ottla.streams.model import committed_times
from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.task.caching import CurrentRecord
from ottla.streams.task.dropped_records import DroppedRecords
from ottla.streams.task.task import Task

Offsets = dict[TopicPartition, tuple[int, str]]
"""Offsets to commit, with their metadata."""
NEVER_WAIT = -1


class StateGate:
    """Excludes readers of a task's stores while the task changes them.

    A reader waits for one record at most: `give_way` lets it pass before the next one. A processor
    may read its own task's stores.
    """

    def __init__(self) -> None:
        self._next, self._state = threading.Lock(), threading.Lock()
        self._writer: int | None = None
        self.is_wanted = False
        """True while a reader waits."""
        self.is_closed = False
        """True if the task has been closed."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclude readers. For the thread of the task."""
        self._enter()
        try:
            yield
        finally:
            self._exit()

    def _enter(self) -> None:
        # A waiting reader has `_next` until it is its turn: locks are not fair by themselves.
        with self._next:
            self._state.acquire()
        self._writer = threading.get_ident()

    def _exit(self) -> None:
        self._writer = None
        self._state.release()

    def give_way(self) -> None:
        """Let a waiting reader pass, between two records."""
        self._exit()
        self._enter()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude the task, and other readers."""
        if self._writer == threading.get_ident():
            yield
            return
        with self._next:
            self.is_wanted = True
            self._state.acquire()
            self.is_wanted = False
        try:
            yield
        finally:
            self._state.release()


class RunningTask:
    """A task, its inputs and its positions. For one thread."""

    def __init__(
        self,
        state: TaskState,
        sub_topology: SubTopology,
        inputs: Iterable[TopicPartition],
        write: Callable[[ProducedRecord], None],
        clock: Callable[[], int],
        idle_ms: int = 0,
    ) -> None:
        self.id: TaskId = state.task
        self.state = state
        self.inputs = tuple(inputs)
        self.gate = StateGate()
        self._clock, self._idle_ms = clock, idle_ms
        self._positions: dict[TopicPartition, int] = {}
        self._committed: Offsets = {}
        # The partitions that were read to their end, and since when all others have waited.
        self._at_end: set[TopicPartition] = set()
        self._waits_since: int | None = None
        self.dropped = DroppedRecords(clock)
        settings = replace(sub_topology.application.settings, writes_changelogs=True)
        self.task = Task(
            sub_topology.topology, settings, write, clock, state.open_map, self.dropped
        )
        self.task.partition = self.id.partition
        state.hand_over(self.task.stores)
        self._initial = clocks.times_of(self.task)

    def resume(self, times: Mapping[str, int]) -> None:
        """Set the times that the task had at its last commit."""
        clocks.set_times(self.task, times)

    def add(self, key: TopicPartition, record: TopicRecord) -> None:
        """Add a record of an input partition."""
        self._positions[key] = record.offset + 1
        self._at_end.discard(key)
        self.task.add(key.topic, record)

    def reach_end(self, key: TopicPartition, offset: int) -> None:
        """Note that a partition has no record at or after an offset yet."""
        self._at_end.add(key)
        self._positions[key] = max(offset, self._positions.get(key, offset))

    def buffered(self, key: TopicPartition) -> int:
        """Return the number of records of a partition that wait."""
        return self.task.buffered(*key)

    @property
    def lag(self) -> int:
        """The number of records that wait."""
        return sum(self.task.buffered(*key) for key in self.inputs)

    def is_ready(self) -> bool:
        """Return True if the next record may be processed (KIP-695)."""
        if self._idle_ms == NEVER_WAIT or len(self.inputs) == 1:
            return True
        empty = [key for key in self.inputs if not self.task.buffered(*key)]
        if not empty:
            self._waits_since = None
            return True
        if not self._at_end.issuperset(empty):
            self._waits_since = None
            return False
        now = self._clock()
        if self._waits_since is None:
            self._waits_since = now
        return now - self._waits_since >= self._idle_ms

    def process(self, most: int) -> int:
        """Process up to `most` records; return their number."""
        count = 0
        with self.gate.writing():
            while count < most and self.is_ready() and self.task.process_next():
                count += 1
                self.task.punctuate_stream_time()
                if self.task.commit_requested:
                    break
                if self.gate.is_wanted:
                    self.gate.give_way()
        return count

    def handle_refused(
        self, record: ProducedRecord, error: ApiError, current: CurrentRecord
    ) -> None:
        """Pass a refused record to the handler. Raises the error if the handler fails."""
        with self.gate.writing(), self.task.at(current):
            self.task.failures.reject(self.task.topology, record, error)

    def punctuate(self) -> None:
        """Call the punctuators that are due by the wall clock."""
        with self.gate.writing():
            self.task.punctuate_wall_clock_time()

    def flush(self) -> None:
        """Flush the caches before a commit. Raises StateDamaged if a result may be wrong."""
        with self.gate.writing():
            self.task.commit()
        self.state.check()

    def close(self) -> None:
        """Close the task; later reads of its stores fail."""
        with self.gate.writing():
            self.gate.is_closed = True
            self.task.close()

    def offsets(self) -> Offsets:
        """Return the offsets that have changed since the last commit.

        The first one carries the times of the task.
        """
        times = clocks.times_of(self.task)
        changed = {name: value for name, value in times.items() if value != self._initial.get(name)}
        offsets: Offsets = {}
        for number, key in enumerate(self.inputs):
            position = self.task.next_offset(*key)
            if position is None:
                position = self._positions.get(key)
            if position is not None:
                metadata = committed_times.encode(self.task.stream_time, {} if number else changed)
                offsets[key] = position, metadata
        return {key: row for key, row in offsets.items() if self._committed.get(key) != row}

    def note_committed(
        self, offsets: Offsets, logged: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Note that these offsets were committed, and save the state.

        `logged` has the offsets after the last records of changelogs, which the commit contains.
        """
        self._committed |= {key: offsets[key] for key in self.inputs if key in offsets}
        positions = self.state.positions
        positions |= {key: row for key, row in (logged or {}).items() if key in positions}
        with self.gate.writing():
            self.state.save()

    def committed(self) -> dict[TopicPartition, int]:
        """Return the offsets that this task has committed."""
        return {key: offset for key, (offset, _) in dict(self._committed).items()}

    @property
    def wants_commit(self) -> bool:
        """True if a processor has requested a commit, or uncommitted state is large."""
        return self.task.commit_requested or self.state.is_large

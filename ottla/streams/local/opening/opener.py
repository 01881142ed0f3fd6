"""The assigned tasks that are not open yet: finds their positions and the ends of their changelogs.

A lookup belongs to one assignment. After the next one, or a loss of the tasks, its result is
discarded, because another worker may have committed since.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import NamedTuple, Protocol, TypeVar

from ottla.client.errors import NotReachable, TimedOut
from ottla.client.records import TopicPartition
from ottla.streams.local.layout import TaskId, TaskLayout
from ottla.streams.local.opening.lookups import StartLookup
from ottla.streams.local.running import Offsets

_log = logging.getLogger(__name__)
# The pause between two looks at positions that an open transaction may change.
_UNSTABLE_S = 0.1
# The pause after an error of the brokers.
_FAILED_S = 1.0
T = TypeVar("T")
Spans = Mapping[TopicPartition, tuple[int, int]]


class FindPositions(Protocol):
    """The requests to the brokers."""

    def committed(self, keys: Iterable[TopicPartition]) -> Offsets | None:
        """Return the committed positions; None if an open transaction may change them."""

    def spans(self, keys: Iterable[TopicPartition]) -> Spans:
        """Return the first offset and the high watermark of partitions."""


class FoundTask(NamedTuple):
    """The committed positions of a task's inputs, and the offsets of its changelogs."""

    task: TaskId
    committed: Offsets
    spans: Spans


class TaskOpener:
    """The tasks of one worker that are to be opened. For one thread."""

    def __init__(
        self,
        positions: FindPositions,
        refresh: Callable[[], TaskLayout],
        start: StartLookup,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._positions, self._refresh = positions, refresh
        self._start, self._clock = start, clock
        # The partitions of an assignment until the layout of its topics is known.
        self._partitions: frozenset[TopicPartition] | None = None
        self._is_outdated = False
        self._layouts: Future[TaskLayout] | None = None
        self._found: Future[list[FoundTask]] | None = None
        self._begin_at = 0.0
        self.tasks: set[TaskId] = set()
        """The assigned tasks that are not open yet."""

    @property
    def is_busy(self) -> bool:
        """True while an assignment has a task that is not open yet."""
        return bool(self.tasks) or self._partitions is not None

    def assign(self, partitions: Iterable[TopicPartition], tasks: Iterable[TaskId]) -> None:
        """Open these tasks of an assignment, which may have tasks of new topics, too."""
        self.add(tasks)
        self._partitions = frozenset(partitions)
        self._is_outdated, self._layouts = True, None

    def add(self, tasks: Iterable[TaskId]) -> None:
        """Open these tasks, too."""
        self.tasks.update(tasks)
        self.reset()

    def reset(self) -> None:
        """Discard what was looked up, because the tasks are lost or others may change them."""
        self._found = None
        self._begin_at = 0.0

    def join(self) -> None:
        """Leave tasks of new topics to the next assignment: the group does not know them yet."""
        self._partitions = None

    def new_tasks(self) -> frozenset[TaskId]:
        """Return all tasks of an assignment, once, when the layout of its topics is known."""
        if self._layouts is None:
            if self._is_outdated and self._clock() >= self._begin_at:
                self._layouts = self._start(self._refresh)
            return frozenset()
        if not self._layouts.done():
            return frozenset()
        lookup, self._layouts = self._layouts, None
        layout = self._result(lookup)
        if layout is None:
            return frozenset()
        partitions, self._partitions = self._partitions or frozenset(), None
        self._is_outdated = False
        return frozenset(layout.readers[key] for key in partitions if key in layout.readers)

    def found(self, layout: TaskLayout) -> list[FoundTask]:
        """Return the tasks whose positions are known now, to be opened."""
        if self._found is None:
            if self._is_outdated or not self.tasks or self._clock() < self._begin_at:
                return []
            tasks = sorted(self.tasks)
            self._found = self._start(lambda: self._look(layout, tasks))
        if not self._found.done():
            return []
        lookup, self._found = self._found, None
        self._begin_at = self._clock() + _UNSTABLE_S
        return [row for row in self._result(lookup) or [] if row.task in self.tasks]

    def _look(self, layout: TaskLayout, tasks: list[TaskId]) -> list[FoundTask]:
        """Find the tasks whose last owners have no open transaction.

        A killed owner's transaction ends with its time-out; the other tasks do not wait for it.
        """
        committed = self._positions.committed(key for task in tasks for key in layout.inputs[task])
        if committed is not None:
            rows = dict.fromkeys(tasks, committed)
        else:
            each = {task: self._positions.committed(layout.inputs[task]) for task in tasks}
            rows = {task: row for task, row in each.items() if row is not None}
        # The ends of changelogs after the positions: the commits of the last owners are complete.
        changelogs = {task: layout.changelogs(task) for task in rows}
        spans = self._positions.spans(key for keys in changelogs.values() for key in keys)
        return [
            FoundTask(
                task,
                {key: row[key] for key in layout.inputs[task] if key in row},
                {key: spans[key] for key in changelogs[task]},
            )
            for task, row in rows.items()
        ]

    def _result(self, lookup: Future[T]) -> T | None:
        """Return a result; None if the brokers do not respond: the lookup is repeated later."""
        try:
            return lookup.result()
        except (NotReachable, TimedOut) as error:
            _log.warning("Tasks are opened later, because the brokers failed: %s", error)
            self._begin_at = self._clock() + _FAILED_S
            return None

"""The replicas of a worker: opens those that the group's leader has placed here, and reports how
far they have read.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Protocol

from ottla.base.errors import OttlaError
from ottla.client.records import TopicPartition
from ottla.streams.application.state_listeners import SuspendReason
from ottla.streams.local.assignment.placement import MemberPlacement, ReplicaSettings
from ottla.streams.local.disk.directory import StateDirectory
from ottla.streams.local.layout import TaskId, TaskLayout
from ottla.streams.local.opening.lookups import StartLookup, look_up_now
from ottla.streams.local.replicas.standbys import Standby, Standbys
from ottla.streams.local.replicas.task_states import LogBufferPut, Spans, TaskStates
from ottla.streams.local.state import TaskState
from ottla.streams.model.errors import StateDamaged

_log = logging.getLogger(__name__)
# The pauses between two looks at warm-up replicas, and between two attempts to open a state.
_LOOK_S = 1.0
_SAVE_S = 1.0
# The longest pause between two looks at state that is not used.
_CLEAN_S = 60.0


class ChangelogOffsets(Protocol):
    """The offsets of changelogs on the brokers."""

    def spans(self, keys: Iterable[TopicPartition]) -> Spans:
        """Return the first offset and the high watermark of partitions."""


class TaskReplicas:
    """The standby and warm-up replicas of one worker. For one thread."""

    def __init__(
        self,
        standbys: Standbys,
        states: TaskStates,
        offsets: ChangelogOffsets,
        directory: StateDirectory | None,
        settings: ReplicaSettings,
        start: StartLookup = look_up_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start` asks the brokers for offsets without a wait."""
        self._start, self._monotonic = start, monotonic
        self._found: Future[tuple[list[TaskId], Spans]] | None = None
        self._standbys, self._states, self._offsets = standbys, states, offsets
        self._directory = directory
        self._settings = settings
        self._unopened: set[TaskId] = set()
        self._warmups: set[TaskId] = set()
        self._open_at = self._look_at = self._save_at = self._probe_at = 0.0
        self._clean_s = min(settings.state_cleanup_delay_ms / 1000, _CLEAN_S)
        self._clean_at = self._monotonic() + self._clean_s

    @property
    def tasks(self) -> frozenset[TaskId]:
        """The tasks that have a replica here."""
        return self._standbys.tasks

    def states(self) -> list[TaskState]:
        """Return the states of the replicas; other threads may call it."""
        return self._standbys.states()

    def replicas(self) -> list[Standby]:
        """Return the replicas; other threads may call it, and read the stores."""
        return self._standbys.replicas()

    def assign(self, placement: MemberPlacement, owned: frozenset[TaskId]) -> None:
        """Keep exactly the replicas of an assignment, except for tasks that the worker runs."""
        wanted = {*placement.standby, *placement.warmup} - owned
        self._warmups = set(placement.warmup) & wanted
        for task in self.tasks - wanted - owned:
            self._close(task)
        self._unopened = wanted - self.tasks
        self._found = None
        self._open_at = self._look_at = 0.0
        self._probe_at = self._monotonic() + self._settings.probing_rebalance_interval_ms / 1000

    def _close(self, task: TaskId) -> None:
        state = self._standbys.take(task, SuspendReason.MIGRATED)
        if state is not None:
            self._states.save_and_close(state)

    def serve(self, layout: TaskLayout, log: LogBufferPut) -> int:
        """Open replicas, and read changelogs; return the number of records."""
        now = self._monotonic()
        if self._found is None and self._unopened and now >= self._open_at:
            self._open_at = now + _LOOK_S
            self._found = self._look(layout)
        if self._found is not None and self._found.done():
            lookup, self._found = self._found, None
            self._open(lookup, layout, log)
        if now >= self._clean_at:
            self._clean_at = now + self._clean_s
            self._discard_unused()
        try:
            count = self._standbys.step()
            if now >= self._save_at:
                self._save_at = now + _SAVE_S
                self._standbys.save()
        except StateDamaged:
            return self._reopen_damaged()
        return count

    def _discard_unused(self) -> None:
        """Delete state on disk that is not used, where no task waits for it."""
        directory, delay_ms = self._directory, self._settings.state_cleanup_delay_ms
        if directory is not None:
            self._start(lambda: directory.discard_unused(delay_ms))

    def _reopen_damaged(self) -> int:
        """Close the replicas with damaged state, to restore them; return their number."""
        damaged = self._standbys.damaged()
        for task in damaged:
            self._close(task)
        self._unopened |= set(damaged)
        return len(damaged)

    def _look(self, layout: TaskLayout) -> Future[tuple[list[TaskId], Spans]]:
        tasks = sorted(task for task in self._unopened if task in layout.inputs)
        keys = [key for task in tasks for key in layout.changelogs(task)]
        return self._start(lambda: (tasks, self._offsets.spans(keys)))

    def _open(
        self, lookup: Future[tuple[list[TaskId], Spans]], layout: TaskLayout, log: LogBufferPut
    ) -> None:
        try:
            tasks, spans = lookup.result()
        except OttlaError as error:
            # The tasks of this worker do not need replicas.
            _log.warning("Replicas are opened later, because the brokers failed: %s", error)
            return
        for task in sorted(self._unopened.intersection(tasks)):
            state = self._states.open(task, layout, spans, log)
            if state is not None:
                self._unopened.discard(task)
                self._standbys.add(state, layout.changelogs(task))

    def take(self, task: TaskId, spans: Spans) -> TaskState | None:
        """Return the state of a replica that becomes active; None if there is no usable one."""
        self._unopened.discard(task)
        self._warmups.discard(task)
        state = self._standbys.take(task, SuspendReason.PROMOTED)
        if state is None:
            return None
        positions = state.positions
        if all(first <= positions.get(key, first) <= end for key, (first, end) in spans.items()):
            with contextlib.suppress(StateDamaged):
                state.save()
                return state
        self._states.close(state)
        return None

    def have_warmed_up(self) -> bool:
        """Return True, once, if a warm-up replica has caught up: the group can be joined again.

        At the latest it is joined after the probing interval.
        """
        now = self._monotonic()
        if not self._warmups or now < self._look_at:
            return False
        self._look_at = now + _LOOK_S
        lags = {task: self._standbys.lag(task) for task in self._warmups & self.tasks}
        done = {
            task
            for task, lag in lags.items()
            if lag is not None and lag <= self._settings.acceptable_recovery_lag
        }
        if now >= self._probe_at:
            done = self._warmups
        self._warmups = self._warmups - done
        return bool(done)

    def positions(self, owned: frozenset[TaskId]) -> dict[TaskId, int]:
        """Return the sums of the positions in changelogs that the states here have.

        Tasks in `owned` run here, and a task without a state here is left out.
        """
        on_disk = self._directory.positions() if self._directory is not None else {}
        sums = {TaskId.parse(name): sum(rows.values()) for name, rows in on_disk.items() if rows}
        sums |= {task: self._standbys.position(task) for task in self.tasks}
        return {task: position for task, position in sums.items() if task not in owned}

    def close(self) -> None:
        """Close all replicas, with what they have read."""
        for task in self.tasks:
            self._close(task)
        self._standbys.close()

"""The worker: one loop that joins the group, restores, processes and commits.

Tasks that this worker keeps are processed during a rebalance; commits wait for its end. A task that
it must give up is committed first. If the group has removed the worker, or refuses a commit, all
tasks are closed, and the worker joins again: records that were not committed are read once more.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from ottla.base.errors import ApiError, OttlaError
from ottla.client.group.background import Failed, Joined, Lost, Rejoin
from ottla.client.records import TopicPartition
from ottla.streams.application.metadata import TaskMetadata, ThreadMetadata
from ottla.streams.application.progress import Progress
from ottla.streams.local.assignment.placement import TaskMember
from ottla.streams.local.cluster import TopicPositions
from ottla.streams.local.globals import GlobalState
from ottla.streams.local.inputs import Arrived, PartitionReader
from ottla.streams.local.layout import TaskId, TaskLayout
from ottla.streams.local.membership import GroupMembership
from ottla.streams.local.opening.lookups import BrokerLookups
from ottla.streams.local.opening.opener import TaskOpener
from ottla.streams.local.ports import EnginePorts
from ottla.streams.local.replicas.replicas import TaskReplicas
from ottla.streams.local.replicas.standbys import Standby
from ottla.streams.local.replicas.task_states import TaskStates
from ottla.streams.local.restoring import Restorer
from ottla.streams.local.running import Offsets, RunningTask
from ottla.streams.local.sending.output import TaskOutput
from ottla.streams.local.state import TaskState
from ottla.streams.model.errors import RecordsRefused, StateDamaged, TaskMigrated
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.task.task import TaskSettings

_log = logging.getLogger(__name__)
_POLL_RECORDS = 1_000
_PROCESS_RECORDS = 1_000
# The number of waiting records of a partition above which it is paused.
_BUFFERED_RECORDS = 5_000
_IDLE_S = 0.05
_STOP_S = 1.0


@dataclass(frozen=True)
class WorkerSettings:
    """The options of a worker; times in ms."""

    commit_interval_ms: int
    max_task_idle_ms: int = 0
    purge_interval_ms: int = 30_000
    member: TaskMember = field(default_factory=TaskMember)
    """The description of this worker in the group; each join adds its tasks."""


class Layouts(Protocol):
    """The layout of the application for the topics that exist now."""

    def current(self) -> TaskLayout:
        """Return the last layout."""

    def refresh(self) -> TaskLayout:
        """Return the layout for the topics that exist."""


@dataclass(frozen=True)
class TaskWorkerParts:
    """The connections and the state of one worker, which closes them."""

    membership: GroupMembership
    reader: PartitionReader
    restorer: Restorer
    output: TaskOutput
    positions: TopicPositions
    globals: GlobalState
    states: TaskStates
    replicas: TaskReplicas
    opener: TaskOpener
    lookups: BrokerLookups
    ports: EnginePorts


class TaskWorker:
    """The loop of one worker; `run` returns after `stop`, or raises the error that ended it."""

    def __init__(
        self,
        settings: WorkerSettings,
        tasks: TaskSettings,
        layouts: Layouts,
        parts: TaskWorkerParts,
        on_change: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._application_id = tasks.application_id
        self._layouts, self._membership = layouts, parts.membership
        self._reader, self._restorer = parts.reader, parts.restorer
        self._output, self._positions = parts.output, parts.positions
        self._globals, self._task_states = parts.globals, parts.states
        self._replicas, self._lookups = parts.replicas, parts.lookups
        self._ports = parts.ports
        self._on_change = on_change
        self._stopping = threading.Event()
        self._opener = parts.opener
        self._states: dict[TaskId, TaskState] = {}
        self.running: dict[TaskId, RunningTask] = {}
        self._readers: dict[TopicPartition, RunningTask] = {}
        self.is_assigned = False
        """True if the worker has an assignment, and has restored all of its tasks."""
        self.is_paused = False
        """True while the tasks process nothing (KIP-834); set by any thread."""
        self._was_assigned = False
        self.consumed = 0
        self._commits = 0
        self._commit_at = 0.0
        self._purges: Future[None] | None = None
        self._purge_at = self._ports.monotonic() + settings.purge_interval_ms / 1000

    def stop(self) -> None:
        """Let the loop end after a commit."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """True after `stop`."""
        return self._stopping.is_set()

    def progress(self) -> Progress:
        """Return the progress; other threads may call it."""
        running = list(self.running.values())
        return Progress(
            batch=self._commits,
            records=self.consumed,
            lag=self._restorer.left + sum(row.lag for row in running),
            dropped={str(row.id): row.dropped.total for row in running if row.dropped.total},
            tasks={
                "active": len(running),
                "restoring": len(self._states) + len(self._opener.tasks),
                "standby": len(self._replicas.tasks),
            },
            restore_left=self._restorer.left,
            restore_total=self._restorer.total,
        )

    @property
    def layout(self) -> TaskLayout:
        """The tasks of the application."""
        return self._layouts.current()

    def metadata(self, thread_name: str) -> ThreadMetadata:
        """Return the tasks of this worker; other threads may call it."""
        state = "RUNNING" if self.is_assigned else "PARTITIONS_ASSIGNED"
        inputs = self.layout.inputs
        active = tuple(
            TaskMetadata(str(row.id), frozenset(row.inputs), row.committed())
            for row in sorted(self.running.values(), key=lambda row: row.id)
        )
        standby = tuple(
            TaskMetadata(str(task), frozenset(inputs.get(task, ())), {})
            for task in sorted(self._replicas.tasks)
        )
        return ThreadMetadata(
            thread_name, state if self._was_assigned else "STARTING", active, standby
        )

    def replicas(self) -> list[Standby]:
        """Return the standby and warm-up replicas; other threads may read their stores."""
        return self._replicas.replicas()

    def store_positions(self) -> dict[TopicPartition, tuple[str, int | None]]:
        """Return the stores of the changelogs of tasks here, with their positions; other threads
        may call it.

        The position is None if the task runs: it is at the end.
        """
        layout = self.layout
        rows: dict[TopicPartition, tuple[str, int | None]] = {}
        for task in list(self.running):
            rows |= {key: (store, None) for key, store in layout.changelogs(task).items()}
        for state in (*list(self._states.values()), *self._replicas.states()):
            positions = dict(state.positions)
            stores = layout.changelogs(state.task)
            rows |= {key: (stores[key], position) for key, position in positions.items()}
        return rows

    def run(self) -> None:
        """Run until `stop`."""
        is_clean = False
        try:
            self._globals.fill()
            self._join()
            while not self._stopping.is_set():
                self._turn()
            is_clean = True
        finally:
            self._close(is_clean=is_clean)

    def _turn(self) -> None:
        try:
            self._serve_group()
            self._open_tasks()
            self._restore()
            busy = self._process()
            # Replicas do not wait until the tasks have no records.
            busy |= self._follow()
            self._read(0.0 if busy else self._idle_s())
            self._output.serve()
            self._commit_if_due()
        except TaskMigrated as error:
            _log.warning("%s: %s. Its tasks are restored.", self._application_id, error)
            self._lose_tasks()
            self._join()
        except (StateDamaged, RecordsRefused) as error:
            self._open_again(error)

    def _open_again(self, error: Exception) -> None:
        """Let the tasks go back to their last commit.

        One transaction has the results of all tasks. The group is not concerned.
        """
        _log.warning("%s: %s. All tasks are opened again.", self._application_id, error)
        tasks = self._owned()
        self._lose_tasks()
        self._opener.add(tasks)

    # -- group ------------------------------------------------------------------------------------

    def _serve_group(self) -> None:
        for event in self._membership.events():
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Lost):
                _log.warning(
                    "%s: the group has removed this worker (%s): its tasks are restored.",
                    self._application_id,
                    event.cause.name.lower(),
                )
                self._lose_tasks()
                self._join()
            elif isinstance(event, Rejoin) and not self._membership.is_joining:
                self._commit_for_group()
                self._join()
            elif isinstance(event, Joined):
                self._take_over(event.partitions)

    def _join(self) -> None:
        self._opener.join()
        owned = self._owned()
        positions, followed = self._replicas.positions(owned), self._replicas.tasks
        self._membership.join(
            replace(self._settings.member, owned=owned, followed=followed, positions=positions)
        )

    def _owned(self) -> frozenset[TaskId]:
        return frozenset(self._states) | frozenset(self.running) | self._opener.tasks

    def _take_over(self, partitions: list[TopicPartition]) -> None:
        """Give up the tasks that are not assigned any more; new ones are opened later."""
        self._was_assigned = True
        readers = self._layouts.current().readers
        assigned = {readers[key] for key in partitions if key in readers}
        revoked = self._owned() - assigned
        if revoked:
            self._commit_for_group()
            for task in revoked:
                self._close_task(task)
        self._opener.assign(partitions, assigned - self._owned())
        self._replicas.assign(self._membership.placement, self._owned())
        if revoked:
            # The group's leader gives the tasks to their new owners now.
            self._join()

    def _open_tasks(self) -> None:
        """Begin to restore the assigned tasks that the brokers have responded about."""
        if added := self._opener.new_tasks() - self._owned():
            self._opener.add(added)
        layout = self._layouts.current()
        for task, committed, spans in self._opener.found(layout):
            self._positions.adopt(layout.inputs[task], committed)
            state = self._replicas.take(task, spans) or self._task_states.open(
                task, layout, spans, self._log_put
            )
            if state is not None:
                self._opener.tasks.discard(task)
                self._states[task] = state
                self._restorer.begin(state, layout.changelogs(task), spans)

    def _log_put(
        self, task: TaskId, topics: Mapping[str, str], store: str, key: bytes, value: bytes | None
    ) -> None:
        """Write a put of a buffer to its changelog."""
        now = max(self.running[task].task.now, 0)
        record = ProducedRecord(topics[store], key, value, now, (), task.partition)
        self._output.write(record, is_logged=True)

    def _follow(self) -> bool:
        """Read the changelogs of replicas; return True if there may be more."""
        count = self._replicas.serve(self._layouts.current(), self._log_put)
        if not self._membership.is_joining and self._replicas.have_warmed_up():
            self._join()
        return count > 0

    def _restore(self) -> None:
        if self._restorer.is_busy:
            wait_s = 0.0 if self.running else _IDLE_S
            for state in self._restorer.step(wait_s):
                self._start_task(state)
        is_assigned = self._was_assigned and not (self._states or self._opener.is_busy)
        if is_assigned != self.is_assigned:
            self.is_assigned = is_assigned
            self._on_change()

    def _start_task(self, state: TaskState) -> None:
        layout = self._layouts.current()
        task_id = self._states.pop(state.task).task
        inputs = layout.inputs[task_id]
        changelogs = {key.topic for key in layout.changelogs(task_id)}

        def write(record: ProducedRecord) -> None:
            if record.topic in changelogs:
                record = record._replace(partition=task_id.partition)
                self._output.write(record, is_logged=True)
            elif self._output.refusals is None:
                self._output.write(record)
            else:
                self._output.write_result(record, running)

        running = RunningTask(
            state,
            layout.sub_topologies[task_id.sub_topology],
            inputs,
            write,
            self._globals.clock,
            self._settings.max_task_idle_ms,
        )
        running.resume(self._positions.times(inputs))
        self.running[task_id] = running
        self._readers |= dict.fromkeys(inputs, running)
        self._reader.add(self._positions.starts(inputs))

    def _close_task(self, task: TaskId) -> None:
        self._restorer.cancel(task)
        state = self._states.pop(task, None)
        self._opener.tasks.discard(task)
        running = self.running.pop(task, None)
        if running is not None:
            for key in running.inputs:
                del self._readers[key]
            self._reader.remove(running.inputs)
            running.close()
            state = running.state
        if state is not None:
            self._task_states.close(state)

    def _lose_tasks(self) -> None:
        """Close all tasks without a commit."""
        self._output.abort()
        for task in self._owned():
            self._close_task(task)
        self._opener.reset()

    # -- records ----------------------------------------------------------------------------------

    def _read(self, timeout_s: float) -> None:
        readers = self._readers
        full = [key for key, task in readers.items() if task.buffered(key) > _BUFFERED_RECORDS]
        self._reader.set_paused(full)
        if not self._reader.assigned:
            self._ports.wait(self._stopping, timeout_s)
            return
        for row in self._reader.poll(_POLL_RECORDS, timeout_s):
            if isinstance(row, Arrived):
                self.consumed += 1
                readers[row.key].add(row.key, row.record)
            else:
                readers[row.key].reach_end(row.key, row.offset)
        self._globals.read()

    def _process(self) -> bool:
        """Process records and punctuators; return True if more records can be processed."""
        busy = False
        if self.is_paused:
            return busy
        for running in list(self.running.values()):
            count = running.process(_PROCESS_RECORDS)
            running.punctuate()
            busy |= count == _PROCESS_RECORDS
        return busy

    def _idle_s(self) -> float:
        due_s = self._commit_at - self._ports.monotonic()
        return min(_IDLE_S, max(due_s, 0.001)) if self.running else _IDLE_S

    # -- commits ----------------------------------------------------------------------------------

    def _commit_if_due(self) -> None:
        requested = any(running.wants_commit for running in self.running.values())
        if not requested and self._ports.monotonic() < self._commit_at:
            return
        self._commit()

    def _commit_for_group(self) -> None:
        """Commit before a join, also if the tasks must go back to their last commit."""
        try:
            self._commit()
        except (StateDamaged, RecordsRefused) as error:
            self._open_again(error)

    def _handle_refused(self) -> None:
        """Let the handlers decide about refused records, before their inputs are committed."""
        refusals = self._output.refusals
        while refusals is not None and (refused := self._output.settle()):
            faults = set(map(id, refusals.note(refused)))
            for row in refused:
                sent, error = row.sent, row.error
                if id(row) not in faults:
                    try:
                        self._output.write_again(sent)
                        continue
                    except ApiError as now_refused:
                        error = now_refused
                sent.task.handle_refused(sent.record, error, sent.current)

    def _commit(self) -> None:
        """Commit all tasks together, unless the group is being rebalanced."""
        if self._membership.is_joining:
            return
        self._commit_at = self._ports.monotonic() + self._settings.commit_interval_ms / 1000
        offsets: Offsets = {}
        for running in self.running.values():
            running.flush()
            offsets |= running.offsets()
        self._handle_refused()
        self._output.commit(
            self._membership.group_id, self._membership.identity, offsets, self._membership.commit
        )
        logged = self._output.take_logged()
        for running in self.running.values():
            running.note_committed(offsets, logged)
        self._positions.note(offsets)
        self._commits += 1
        self._purge()

    def _purge(self) -> None:
        """Delete records of repartition topics that were committed (KIP-204)."""
        if self._ports.monotonic() >= self._purge_at:
            self._purge_at = self._ports.monotonic() + self._settings.purge_interval_ms / 1000
            before = self._positions.purgeable(self._layouts.current())
            if before and (self._purges is None or self._purges.done()):
                if self._purges is not None:
                    self._purges.result()
                self._purges = self._lookups.start(lambda: self._positions.purge(before))

    def _close(self, *, is_clean: bool) -> None:
        try:
            if is_clean:
                self._commit()
        except (OttlaError, OSError) as error:
            _log.warning("%s: the last commit failed: %s", self._application_id, error)
        for task in self._owned():
            self._close_task(task)
        self._replicas.close()
        self._output.close()
        self._membership.leave("the application is being closed")
        self._membership.close()
        self._restorer.close()
        self._globals.close()
        self._reader.close()
        # Brokers that do not respond do not delay the end.
        self._lookups.stop(_STOP_S)
        self._positions.close()

"""Runs an application (streams/application/instance.py) in this process: a worker in a thread."""

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ottla.base.user_code import LoggedErrors
from ottla.client.admin.groups import describe_group
from ottla.client.admin.offsets import LATEST, committed_offsets, list_offsets
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.group.member import GroupSettings
from ottla.client.producer.partitioners import murmur2_partition
from ottla.client.records import TopicPartition
from ottla.client.security.options import security_of
from ottla.streams.application.metadata import (
    KeyQueryMetadata,
    LagInfo,
    StreamsMetadata,
    ThreadMetadata,
)
from ottla.streams.application.progress import Progress
from ottla.streams.application.state_listeners import (
    StandbyUpdateListener,
    StateRestoreListener,
)
from ottla.streams.application.task_members import TaskInstance, task_instances
from ottla.streams.layout.internal_topics import (
    check_partition_counts,
    create_internal_topics,
)
from ottla.streams.layout.layout import Application
from ottla.streams.local.assignment.assignor import Spans, TaskAssignor
from ottla.streams.local.assignment.placement import ReplicaSettings, TaskMember
from ottla.streams.local.cluster import TopicPositions, spans_of
from ottla.streams.local.disk.directory import StateDirectory
from ottla.streams.local.globals import GlobalState
from ottla.streams.local.inputs import PartitionReader
from ottla.streams.local.layout import TaskId, TaskLayout, subscription, task_layout
from ottla.streams.local.membership import GroupMembership
from ottla.streams.local.opening.lookups import BrokerLookups
from ottla.streams.local.opening.opener import TaskOpener
from ottla.streams.local.ports import EnginePorts, RealPorts
from ottla.streams.local.reading import LocalStores
from ottla.streams.local.replicas.replicas import TaskReplicas
from ottla.streams.local.replicas.standbys import Standbys
from ottla.streams.local.replicas.task_states import TaskStates
from ottla.streams.local.restoring import Restorer
from ottla.streams.local.sending.output import TaskOutput
from ottla.streams.local.sending.refused import FindLimit, RefusedRecords
from ottla.streams.local.worker import TaskWorker, TaskWorkerParts, WorkerSettings
from ottla.streams.model.errors import StreamsError
from ottla.streams.serdes import Serde, resolve
from ottla.streams.settings.application import AppSettings
from ottla.streams.settings.handlers import DefaultProductionExceptionHandler
from ottla.streams.stores.builders import StoreType
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Source, Topology, visible_stores

# librdkafka's smallest value.
_TRANSACTION_MS_MIN = 1_000


@dataclass(frozen=True)
class LocalSettings:
    """The options of the engine; times in ms."""

    access: ClusterAccess
    is_exactly_once: bool
    commit_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int = 300_000
    max_task_idle_ms: int = 0
    transaction_timeout_ms: int = 10_000
    replication_factor: int = -1
    offset_reset: str = "earliest"
    workers: int = 1
    state_dir: str = ""
    """The directory of the application's state."""
    keeps_in_memory: bool = False
    """True if stores without a type of their own are in memory."""
    replicas: ReplicaSettings = field(default_factory=ReplicaSettings)
    client_tags: Mapping[str, str] = field(default_factory=dict)
    group_instance_id: str | None = None
    ports: EnginePorts = field(default_factory=RealPorts)


def local_settings(
    access: ClusterAccess, settings: AppSettings, application_id: str
) -> LocalSettings:
    """Return the engine's options of an application."""
    return LocalSettings(
        access,
        settings.is_exactly_once,
        settings.commit_interval_ms,
        settings.session_timeout_ms,
        settings.heartbeat_interval_ms,
        max_poll_interval_ms=settings.max_poll_interval_ms,
        max_task_idle_ms=settings.max_task_idle_ms,
        workers=settings.num_stream_threads or 1,
        replication_factor=settings.replication_factor,
        state_dir=settings.checkpoint(application_id),
        keeps_in_memory=StoreType.of(settings.default_dsl_store).in_memory,
        replicas=ReplicaSettings(
            settings.num_standby_replicas,
            settings.acceptable_recovery_lag,
            settings.max_warmup_replicas,
            tuple(settings.rack_aware_assignment_tags),
            settings.probing_rebalance_interval_ms,
            settings.state_cleanup_delay_ms,
        ),
        client_tags=settings.client_tags,
        group_instance_id=settings.group_instance_id or None,
    )


class ApplicationLayouts:
    """The layout for the topics that exist: computed again if their partitions have changed."""

    def __init__(self, application: Application, brokers: Brokers) -> None:
        self._application = application
        self._brokers = brokers
        self._lock = threading.Lock()
        self._counts: Mapping[str, int] = {}
        self._ids: Mapping[str, str] = {}
        self._layout: TaskLayout | None = None

    def of(self, counts: Mapping[str, int]) -> TaskLayout:
        """Return the layout for these numbers of partitions."""
        with self._lock:
            if self._layout is None or counts != self._counts:
                self._counts = dict(counts)
                self._layout = task_layout(self._application, counts)
            return self._layout

    def refresh(self) -> TaskLayout:
        """Return the layout for the topics on the brokers.

        Raises TopologyError if a source topic has more partitions than a changelog.
        """
        topics = list_topics(self._brokers)
        self._ids = {topic.name: topic.topic_id.hex() for topic in topics}
        counts = {topic.name: len(topic.partitions) for topic in topics}
        layout = self.of(counts)
        check_partition_counts(layout.topics, counts)
        return layout

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty if the brokers do not know it."""
        return self._ids.get(topic, "")

    def current(self) -> TaskLayout:
        """Return the last layout."""
        assert self._layout is not None, "call refresh first"
        return self._layout


class LocalEngine:
    """Runs one topology."""

    def __init__(self, topology: Topology, tasks: TaskSettings, settings: LocalSettings) -> None:
        self._topology = _with_stores_of_engine(topology, in_memory=settings.keeps_in_memory)
        self._tasks = tasks
        self._settings = settings
        self._process = uuid.uuid4()
        is_on_disk = any(not store.in_memory for store in self._topology.stores.values())
        self._directory = (
            StateDirectory(settings.state_dir, settings.group_instance_id) if is_on_disk else None
        )
        self._workers: list[TaskWorker] = []
        self.is_paused = False
        self.instance: Mapping[str, Any] = {}
        """The fields that the members publish about this instance; set it before `start`."""
        self.restore_listener: StateRestoreListener | None = None
        self.standby_listener: StandbyUpdateListener | None = None
        self.on_change: Callable[[], None] = _ignore
        """Called when a worker begins or ends to process."""

    def open(self) -> None:
        """Create the internal topics; TopologyError if one has another number of partitions."""
        settings = self._settings
        with settings.access.brokers(client_id=self._tasks.application_id) as brokers:
            layouts = ApplicationLayouts(Application(self._topology, self._tasks), brokers)
            counts = {topic.name: len(topic.partitions) for topic in list_topics(brokers)}
            topics = layouts.of(counts).topics
            create_internal_topics(brokers, topics, counts, settings.replication_factor)
        if self._directory is not None:
            self._directory.open()

    def start(self) -> "LocalQuery":
        """Start the workers."""
        self._workers = [self._worker(number) for number in range(self._settings.workers)]
        self.set_paused(is_paused=self.is_paused)
        return LocalQuery(self._workers, self._is_idle, self._settings.ports)

    def set_paused(self, *, is_paused: bool) -> None:
        """Let the tasks process nothing, or continue."""
        self.is_paused = is_paused
        for worker in self._workers:
            worker.is_paused = is_paused

    def stores(self, name: str, *, is_stale: bool = False) -> LocalStores:
        """Return the stores of this name in the tasks that run in this process.

        With `is_stale` those of standbys, too.
        """
        return LocalStores(
            name,
            lambda: [task for row in self._workers for task in list(row.running.values())],
            lambda: [row for worker in self._workers for row in worker.replicas() if is_stale],
        )

    def threads(self) -> list[ThreadMetadata]:
        """Return the workers with their tasks."""
        return [worker.metadata(_thread_name(n)) for n, worker in enumerate(self._workers)]

    def store_lags(self) -> dict[str, dict[int, LagInfo]]:
        """Return the lags of the stores in this process, by store and partition."""
        positions: dict[TopicPartition, tuple[str, int | None]] = {}
        for worker in self._workers:
            positions |= worker.store_positions()
        ends = self._spans(positions) if positions else {}
        lags: dict[str, dict[int, LagInfo]] = {}
        for key, (store, position) in positions.items():
            end = ends[key][1]
            info = LagInfo(end if position is None else position, end)
            lags.setdefault(store, {})[key.partition] = info
        return lags

    def hosts_of(self, store: str, key: Any, serde: Serde[Any] | None) -> KeyQueryMetadata:
        """Return the instances that have a key; the group's metadata has their tasks."""
        if not self._workers:
            raise StreamsError("the metadata of a key needs an application that has been started")
        layout = self._workers[0].layout
        number = next(
            (n for n, row in enumerate(layout.sub_topologies) if store in row.topology.stores), None
        )
        if number is None:
            raise StreamsError(f"there is no store {store} that tasks have")
        builder = layout.sub_topologies[number].topology.stores[store]
        key_serde = serde or resolve(builder.key, self._tasks.defaults.key)
        data = key_serde.serialize(key)
        partition = murmur2_partition(data, range(layout.sub_topologies[number].partitions))
        task = str(TaskId(number, partition))
        rows = self._instances()
        active = [row.candidate.host for row in rows if task in row.active]
        standbys = frozenset(row.candidate.host for row in rows if task in row.standby)
        if not active:
            return KeyQueryMetadata.NOT_AVAILABLE
        return KeyQueryMetadata(active[0], standbys, partition)

    def metadata(self) -> tuple[StreamsMetadata, ...]:
        """Return all instances, with the stores and the topics of their tasks."""
        return tuple(self._metadata(row) for row in self._instances()) if self._workers else ()

    def _metadata(self, row: TaskInstance) -> StreamsMetadata:
        layout = self._workers[0].layout
        tasks = [task for task in map(TaskId.parse, row.active) if task in layout.inputs]
        stores = {name for task in tasks for name in layout.sub_topologies[task[0]].topology.stores}
        return StreamsMetadata(
            self._tasks.application_id,
            row.candidate.instance,
            row.candidate.host,
            True,
            frozenset(stores.intersection(visible_stores(self._topology))),
            frozenset(key.topic for task in tasks for key in layout.inputs[task]),
        )

    def _instances(self) -> list[TaskInstance]:
        application_id = self._tasks.application_id
        with self._settings.access.brokers(client_id=application_id) as brokers:
            return task_instances(describe_group(brokers, application_id))

    def _is_idle(self) -> bool:
        """Return True if everything in the topics that tasks read was processed and committed."""
        application_id, access = self._tasks.application_id, self._settings.access
        with access.brokers(client_id=application_id) as brokers:
            layouts = ApplicationLayouts(Application(self._topology, self._tasks), brokers)
            keys: list[tuple[str, int]] = list(layouts.refresh().readers)
            # Ends after positions: what a task writes before a commit is below them.
            committed = committed_offsets(brokers, application_id)
            ends = list_offsets(brokers, dict.fromkeys(keys, LATEST))
        positions = {key: row.offset for key, row in committed.items()}
        return all(positions.get(key, 0) >= ends[key].offset for key in keys)

    def _worker(self, number: int) -> TaskWorker:
        settings, application_id = self._settings, self._tasks.application_id
        access = settings.access
        properties = {**access.librdkafka_settings(), "client.id": application_id}
        brokers = access.brokers(client_id=application_id, is_proven=True)
        application = Application(self._topology, self._tasks)
        layouts = ApplicationLayouts(application, brokers)
        layout = layouts.refresh()
        application = Application(self._topology, layout.sub_topologies[0].application.settings)

        def reader(suffix: str) -> PartitionReader:
            group_id = f"{application_id}{suffix}"
            return PartitionReader(
                settings.ports, properties, group_id, is_committed=settings.is_exactly_once
            )

        lookups = settings.ports.open_lookups(f"{_thread_name(number)}-lookups")
        positions = TopicPositions(
            brokers, application_id, _resets(self._topology), settings.offset_reset
        )
        worker: TaskWorker | None = None
        globals_ = GlobalState(
            self._topology,
            application.settings,
            settings.ports.time_ms,
            lambda: reader("-globals"),
            lambda topics: positions.spans(positions.partitions(topics)),
            lambda: worker is not None and worker.is_stopping,
        )
        states = TaskStates(
            globals_.open_map,
            globals_.names,
            application.settings.defaults,
            self._directory,
            layouts,
        )
        parts = TaskWorkerParts(
            self._membership(application, number),
            reader(""),
            Restorer(lambda: reader("-restore"), self.restore_listener),
            self._output(
                properties,
                lambda topic: lookups.start(lambda: positions.max_message_bytes(topic)).result(),
            ),
            positions,
            globals_,
            states,
            self._replicas(lambda: reader("-standby"), states, positions, lookups),
            TaskOpener(positions, layouts.refresh, lookups.start, settings.ports.monotonic),
            lookups,
            settings.ports,
        )
        worker = TaskWorker(
            WorkerSettings(
                settings.commit_interval_ms,
                settings.max_task_idle_ms,
                member=TaskMember(process=str(self._process), tags=settings.client_tags),
            ),
            application.settings,
            layouts,
            parts,
            lambda: self.on_change(),
        )
        return worker

    def _membership(self, application: Application, number: int) -> GroupMembership:
        layout_of, settings = partial(task_layout, application), self._settings
        return GroupMembership(
            settings.ports,
            self._group_settings(number),
            subscription(application),
            TaskAssignor(layout_of, self._spans, settings.replicas, self.instance),
        )

    def _replicas(
        self,
        open_reader: Callable[[], PartitionReader],
        states: TaskStates,
        positions: TopicPositions,
        lookups: BrokerLookups,
    ) -> TaskReplicas:
        standbys, settings = Standbys(open_reader, self.standby_listener), self._settings
        return TaskReplicas(
            standbys,
            states,
            positions,
            self._directory,
            settings.replicas,
            lookups.start,
            settings.ports.monotonic,
        )

    def _spans(self, keys: Iterable[TopicPartition]) -> Spans:
        """Return the first and end offsets of changelogs, in the thread of the group.

        Its session must not end while the brokers do not respond.
        """
        application_id, settings = self._tasks.application_id, self._settings
        timeout_s = settings.session_timeout_ms / 1000 / 2
        with settings.access.brokers(client_id=application_id, timeout_s=timeout_s) as brokers:
            return spans_of(brokers, keys)

    def _output(self, properties: Mapping[str, Any], find_limit: FindLimit) -> TaskOutput:
        settings = self._settings
        handlers = self._tasks.exception_handlers
        refusals = (
            None
            if isinstance(handlers.production, DefaultProductionExceptionHandler)
            else RefusedRecords(find_limit, handlers.dead_letter_queue_topic_name)
        )
        if not settings.is_exactly_once:
            return TaskOutput(settings.ports, properties, None, refusals)
        # The next owner of a task waits for the end of a killed worker's transaction.
        timeout_ms = min(settings.transaction_timeout_ms, settings.session_timeout_ms)
        options = {"transaction.timeout.ms": max(timeout_ms, _TRANSACTION_MS_MIN)}
        name = f"{self._tasks.application_id}-{self._process}-{uuid.uuid4().hex[:8]}"
        return TaskOutput(settings.ports, {**properties, **options}, name, refusals)

    def _group_settings(self, number: int) -> GroupSettings:
        settings, instance_id = self._settings, self._settings.group_instance_id
        return GroupSettings(
            bootstrap=settings.access.bootstrap,
            client_id=self._tasks.application_id,
            group_id=self._tasks.application_id,
            instance_id=f"{instance_id}-{number + 1}" if instance_id else None,
            session_s=settings.session_timeout_ms / 1000,
            rebalance_s=settings.max_poll_interval_ms / 1000,
            heartbeat_s=settings.heartbeat_interval_ms / 1000,
            refresh_s=30.0,
            creates_topics=False,
            security=security_of(settings.access.options),
        )

    def close(self) -> None:
        """Release the state directory; a worker has all other resources."""
        if self._directory is not None:
            self._directory.close()

    def clean_up(self) -> None:
        """Delete the state on disk of the instances that do not run."""
        if self._directory is not None:
            self._directory.delete()


class LocalQuery:
    """The running workers; a Query of streams/application/instance.py."""

    def __init__(
        self, workers: Sequence[TaskWorker], is_idle: Callable[[], bool], ports: EnginePorts
    ) -> None:
        self._workers = workers
        self._is_idle = is_idle
        self._error: Exception | None = None
        self._threads = [
            ports.start(partial(self._run, worker), _thread_name(number))
            for number, worker in enumerate(workers)
        ]

    def _run(self, worker: TaskWorker) -> None:
        with LoggedErrors(self._fail):
            worker.run()

    def _fail(self, error: Exception) -> None:
        self._error = error

    @property
    def is_active(self) -> bool:
        """True if all workers run."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def is_running(self) -> bool:
        """True if each worker has an assignment, and all of its tasks are restored."""
        return all(worker.is_assigned for worker in self._workers)

    @property
    def error(self) -> Exception | None:
        """The error that ended a worker; None if none has."""
        return self._error

    def progress(self) -> Progress:
        """Return the number of processed records, and how many wait in changelogs and inputs."""
        return total([worker.progress() for worker in self._workers])

    def is_idle(self) -> bool:
        """Return True if all records of the topics were processed and committed."""
        return self.is_running and self._is_idle()

    def stop(self) -> None:
        """Commit, and stop the workers."""
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            thread.join()


def _thread_name(number: int) -> str:
    return f"streams-worker-{number}"


def total(progresses: Sequence[Progress]) -> Progress:
    """Return the sum of the progress of several workers."""
    dropped: dict[str, int] = {}
    tasks: dict[str, int] = {}
    for progress in progresses:
        for task, count in progress.dropped.items():
            dropped[task] = dropped.get(task, 0) + count
        for state, count in progress.tasks.items():
            tasks[state] = tasks.get(state, 0) + count
    return Progress(
        batch=max(progress.batch for progress in progresses),
        records=sum(progress.records for progress in progresses),
        lag=sum(progress.lag for progress in progresses),
        dropped=dropped,
        tasks=tasks,
        restore_left=sum(progress.restore_left for progress in progresses),
        restore_total=sum(progress.restore_total for progress in progresses),
    )


def _with_stores_of_engine(topology: Topology, *, in_memory: bool) -> Topology:
    """Return a topology whose stores all have a type.

    Hidden stores have changelogs, too: Spark keeps them elsewhere.
    """
    stores = {
        name: replace(
            builder.with_logging_enabled() if builder.is_hidden else builder,
            in_memory=in_memory if builder.in_memory is None else builder.in_memory,
        )
        for name, builder in topology.stores.items()
    }
    return replace(topology, stores=stores)


def _resets(topology: Topology) -> dict[str, str]:
    return {
        topic: node.offset_reset
        for node in topology.nodes.values()
        if isinstance(node, Source) and node.offset_reset is not None
        for topic in node.topics
    }


def _ignore() -> None:
    """Do nothing."""

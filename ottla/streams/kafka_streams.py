"""`KafkaStreams`: runs a topology on Spark, or in this process, until it is closed.

    with KafkaStreams(topology, application_id="app", bootstrap_servers="127.0.0.1:9092") as app:
        app.await_running()
        app.store("counts").get("eu")
        app.await_termination()

If several instances have the same application id, on Spark one is active and the others are
standbys (election.py); with engine="local" they share the tasks (local/). Stores are read from
their changelogs (store_views.py): the writes of a micro-batch are visible about ten milliseconds
after its commit.

Not done: on Spark the methods of `LocalInstance` (local/instance.py): close the application instead
of `pause` and `resume`, use `ottla streams reset` instead of `cleanUp`; `progress()` returns rate
and lag, and every instance has all keys. `addStreamThread` and `removeStreamThread` (Spark's
`master` sets the number of cores), `HostInfo` (`StreamsMetadata.host` is the value of
`application_server`), `StreamsMetrics` (`metrics` has dropped records). `clientInstanceIds`,
`CloseOptions` (an instance that closes always leaves its group).
"""

import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import TracebackType
from typing import Any, TypeVar

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.client.config.access import ClusterAccess
from ottla.client.config.settings import addresses_of
from ottla.client.errors import NotReachable, TimedOut
from ottla.client.raw.consumer import ConsumedRecord
from ottla.streams.application.active_driver import ActiveDriver
from ottla.streams.application.election import Candidate, Election, ElectionSettings
from ottla.streams.application.instance import (
    AlwaysActive,
    Engine,
    Instance,
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
)
from ottla.streams.application.metadata import StreamsMetadata
from ottla.streams.application.metrics_server import MetricsServer
from ottla.streams.application.progress import Progress, ProgressLine
from ottla.streams.application.published_topology import encode_topology
from ottla.streams.application.states import (
    State,
    StateListener,
    StateMachine,
    check_started,
    why_not_running,
)
from ottla.streams.application.topic_checks import check_topics
from ottla.streams.expressions.arity import refuse_async
from ottla.streams.local.engine import LocalEngine, local_settings
from ottla.streams.local.instance import LocalInstance
from ottla.streams.model.errors import StreamsError, TopologyError
from ottla.streams.model.names import changelog_name
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.queries.changelog_feed import ChangelogFeed
from ottla.streams.queries.requests import StateQueryRequest, StateQueryResult, StoreQueryParameters
from ottla.streams.queries.store_views import Change, StoreView, empty_view, view_of
from ottla.streams.queries.stream_time import StreamTime
from ottla.streams.settings.application import (
    AppSettings,
    check_application_id,
    check_local,
    check_names,
    check_spark,
    check_state_dir,
    known_options,
    read_settings,
)
from ottla.streams.settings.config import keywords
from ottla.streams.settings.foreign_options import LOCAL, SPARK
from ottla.streams.settings.handlers import ExceptionHandlers
from ottla.streams.task.metrics import DROPPED_TOTAL, Metrics, task_metrics
from ottla.streams.task.task import Task, TaskSettings, TopicRecord
from ottla.streams.topology.topology import (
    Sink,
    Source,
    Topology,
    check_topology,
    unknown_store,
    visible_stores,
)

__all__ = ["KafkaStreams", "State", "StreamsMetadata", "UncaughtExceptionResponse"]


R = TypeVar("R")
# Only the engine spark needs pyspark, which `ottla[spark]` installs.
_query_settings = deferred("ottla.streams.spark.query.compile", "QuerySettings")
_spark_settings = deferred("ottla.streams.spark.query.engine", "SparkSettings")
_spark_engine = deferred("ottla.streams.spark.query.engine", "SparkEngine")

_IDLE_LOOK_S = 0.1


class KafkaStreams(LocalInstance, SnakeCase):
    """A stream processing application.

    As a context manager it starts on entry and closes on exit. Methods may be called from any
    thread.
    """

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, Any] | None = None,
        *,
        application_id: str | None = None,
        bootstrap_servers: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Create an application; it does not start yet.

        Options are keyword arguments (see `AppSettings`) or a mapping with Kafka's names
        (config.py).
        """
        check_topology(topology, "KafkaStreams")
        engine_name = options.get("engine", (config or {}).get("engine", SPARK))
        check_names(options, engine_name)
        selected = {**(config or {}), "engine": engine_name}
        named = {**keywords(selected, known_options()), **options}
        application_id = application_id or named.pop("application_id", "")
        bootstrap_servers = bootstrap_servers or named.pop("bootstrap_servers", "")
        if not application_id or not bootstrap_servers:
            raise ConfigError("KafkaStreams needs an application_id and bootstrap_servers.")
        self.application_id = check_application_id(application_id)
        self._topology = topology
        self._settings = settings = read_settings(named)
        self._access = ClusterAccess(addresses_of(bootstrap_servers), settings.security)
        self._states = StateMachine()
        self._instance_id = str(uuid.uuid4())
        self._views: dict[tuple[str, bool], tuple[ChangelogFeed, StoreView]] = {}
        self._lock = threading.Lock()
        self._runs_on = engine = self._engine()
        self._instance = Instance(application_id, self._states, engine)
        if isinstance(engine, LocalEngine):
            engine.on_change = self._instance.wake
        self._election = Election(
            ElectionSettings(
                self._access.bootstrap,
                application_id,
                settings.session_timeout_ms,
                settings.heartbeat_interval_ms,
                settings.security,
            ),
            Candidate(
                self._instance_id,
                _now_ms(),
                settings.application_server,
                topology=encode_topology(str(topology.describe())),
            ),
            self._instance.wake,
        )
        self._elector = AlwaysActive() if settings.engine == LOCAL else ActiveDriver(self._election)
        self._metrics_server = (
            MetricsServer(settings.metrics_listener, application_id, self._instance.progress)
            if settings.metrics_listener
            else None
        )
        self._time = StreamTime(self._access, application_id, self._timed_topics())
        self._line = ProgressLine(application_id, self._role, self._shown_progress)

    def _engine(self) -> Engine:
        settings = self._settings
        if settings.engine == LOCAL:
            check_local(settings)
            return LocalEngine(
                self._topology,
                _task_settings(self.application_id, settings),
                local_settings(self._access, settings, self.application_id),
            )
        check_spark(settings)
        if find_spec("pyspark") is None:
            raise ConfigError(
                "KafkaStreams runs on Spark, and pyspark is not installed: install it with "
                "pip install 'ottla[spark]', or run the tasks in this process with engine='local'."
            )
        sink_options = dict(settings.sink_options)
        if settings.is_exactly_once:
            sink_options["processingGuarantee"] = "exactly_once"
        # Kafka's tools show the lag of the group that is named after the application.
        options = {"kafka.group.id": self.application_id, **settings.source_options}
        queries = _query_settings(
            self._access.bootstrap,
            settings.checkpoint(self.application_id),
            max_records=settings.max_records,
            trigger={"processingTime": f"{settings.commit_interval_ms} milliseconds"},
            tick_interval_ms=settings.tick_interval_ms,
            options=options,
            sink_options=sink_options,
            replication_factor=settings.replication_factor,
            security=settings.security,
        )
        spark = _spark_settings(
            settings.spark,
            settings.master,
            settings.num_stream_threads,
            settings.spark_settings,
            settings.py_files,
        )
        engine: Engine = _spark_engine(
            self._topology, _task_settings(self.application_id, settings), queries, spark
        )
        return engine

    def __enter__(self) -> "KafkaStreams":
        """Start the application unless it has been started."""
        if self.state is State.CREATED:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the application."""
        self.close()

    @property
    def state(self) -> State:
        """The current state."""
        return self._states.state

    @property
    def error(self) -> Exception | None:
        """The error that ended the application; None if none occurred."""
        return self._instance.error

    @property
    def is_active(self) -> bool:
        """True if this instance runs the topology; the other instances are standbys."""
        return self._elector.is_active

    def set_state_listener(self, listener: StateListener) -> None:
        """Set a function that is called with the new and the old state. Call it before `start`."""
        self._check_new("a state listener")
        refuse_async(listener, "a state listener")
        self._states.listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Set a function that decides how the application reacts to an error. Call it before
        `start`.
        """
        self._check_new("an uncaught exception handler")
        refuse_async(handler, "an uncaught exception handler")
        self._instance.handler = handler

    def start(self) -> None:
        """Start the application and return immediately.

        Raises TopologyError if topics are missing, or if topics that are joined by key have
        different numbers of partitions; ConfigError if `state_dir` is not writable; NotReachable if
        the brokers do not respond.
        """
        if self.state is not State.CREATED:
            raise StreamsError(
                f"an application can start once, and this one is {self.state.name}: create another"
            )
        check_state_dir(self._settings.state_dir)
        self._check_topics()
        if self._metrics_server is not None:
            self._election.show_metrics(self._metrics_server.start())
        if isinstance(self._runs_on, LocalEngine):
            self._runs_on.instance = self._election.candidate.fields()
        self._instance.start(self._elector)
        shows_progress = self._settings.shows_progress
        if sys.stderr.isatty() if shows_progress is None else shows_progress:
            self._line.start()

    def _timed_topics(self) -> list[str]:
        """Return the topics whose latest timestamps show the stream time of what was processed."""
        topology, name = self._topology, self.application_id
        logged = [store.name for store in topology.stores.values() if store.logging_enabled]
        if logged:
            return [changelog_name(name, store_name) for store_name in logged]
        sinks = [node.topic for node in topology.nodes.values() if isinstance(node, Sink)]
        return [sink for sink in sinks if isinstance(sink, str)]

    def _shown_progress(self) -> Progress:
        progress = self._instance.progress()
        return replace(progress, watermark=self._time.read()) if progress.batch >= 0 else progress

    def _role(self) -> str:
        is_standby = self.state is State.RUNNING and not self.is_active
        return "STANDBY" if is_standby else self.state.name

    def _check_topics(self) -> None:
        if not any(isinstance(node, Source) for node in self._topology.nodes.values()):
            raise TopologyError(
                "the topology reads nothing: give it a source, with builder.stream(…) or table(…)"
            )
        handlers = self._settings.exception_handlers or ExceptionHandlers()
        try:
            with self._access.brokers(client_id=self.application_id) as brokers:
                check_topics(brokers, self._topology, self.application_id, handlers)
        except (NotReachable, TimedOut) as error:
            # Without the traceback of the client: only the address matters.
            refused = type(error)(
                f"{error} (bootstrap_servers of the application {self.application_id!r})"
            )
            refused.add_note(
                "Start a broker with `ottla up`, or set bootstrap_servers to one that runs."
            )
            raise refused from None

    def close(self, timeout_s: float | None = None) -> bool:
        """Close the application, so that the next instance becomes active.

        Returns False if it did not end within `timeout_s` seconds. Waits without limit by default.
        """
        with self._lock:
            views, self._views = list(self._views.values()), {}
        for source, _ in views:
            source.close()
        self._line.stop()
        if self._metrics_server is not None:
            self._metrics_server.stop()
        self._time.close()
        if self._states.move(State.PENDING_SHUTDOWN) and not self._instance.is_started:
            self._states.move(State.NOT_RUNNING)
        return self._instance.stop(timeout_s)

    def await_running(self, timeout_s: float = 60.0) -> None:
        """Wait until the state is RUNNING.

        Raises the error that ended the application, or TimeoutError after `timeout_s` seconds.
        """
        if not self._states.wait_for(State.RUNNING, timeout_s=timeout_s):
            if self.error is not None:
                raise self.error.with_traceback(None) from None
            raise TimeoutError(why_not_running(self.state, timeout_s, self._instance.pending))

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Wait until all records of the topics were read and have had their effects.

        A lag of 0 does not imply this: the last micro-batch may have written records to internal
        topics, such as the responses of a foreign-key join. Callbacks on the wall clock may still
        write records later. Raises the error that ended the application, StreamsError if it was
        closed, or TimeoutError after `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not self._instance.is_idle():
            if self._states.wait_for(State.NOT_RUNNING, State.ERROR, timeout_s=_IDLE_LOOK_S):
                if self.error is not None:
                    raise self.error.with_traceback(None) from None
                raise StreamsError("the application was closed before it was idle")
            if time.monotonic() >= deadline:
                raise TimeoutError(self._why_not_idle(timeout_s))

    def _why_not_idle(self, timeout_s: float) -> str:
        if self.state is not State.RUNNING:
            return why_not_running(self.state, timeout_s, self._instance.pending)
        if not self.is_active:
            return "this instance is a standby: call await_idle in the active instance"
        lag = self._instance.progress().lag
        return f"the application is not idle after {timeout_s:g} s: its last lag was {lag} records"

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the application ends; return False after a timeout. Raises the error that
        ended it.
        """
        self._states.wait_for(State.NOT_RUNNING, State.ERROR, timeout_s=timeout_s)
        if self.error is not None:
            # Without the traceback of the thread that raised it.
            raise self.error.with_traceback(None) from None
        return self.state.is_final

    def progress(self) -> Progress:
        """Return the progress: records, lag, watermark, size of the state, dropped records,
        misplaced keys, and `is_idle`, for which it asks the brokers.
        """
        return replace(self._instance.progress(), is_idle=self._instance.is_idle())

    def metrics(self) -> Metrics:
        """Return the number of dropped records of each task (Kafka's dropped-records-total)."""
        return {
            name: metric
            for task, count in self._instance.progress().dropped.items()
            for name, metric in task_metrics(
                self._instance_id, task, {DROPPED_TOTAL: float(count)}
            ).items()
        }

    def streams_metadata_for_store(self, name: str) -> tuple[StreamsMetadata, ...]:
        """Return the instances that serve a store: all of them, the active one first."""
        return tuple(instance for instance in self.metadata() if name in instance.state_store_names)

    def metadata_for_all_streams_clients(self) -> tuple[StreamsMetadata, ...]:
        """Return all instances, the active one first."""
        return self.metadata()

    def metadata(self) -> tuple[StreamsMetadata, ...]:
        """Return all instances, the active one first (Kafka's metadataForAllStreamsClients)."""
        if isinstance(self._runs_on, LocalEngine):
            return self._runs_on.metadata()
        topology = self._topology
        stores = frozenset(visible_stores(topology))
        sources = [node for node in topology.nodes.values() if isinstance(node, Source)]
        topics = frozenset(topic for node in sources for topic in node.topics)
        active, instances = self._elector.instances
        return tuple(
            StreamsMetadata(
                self.application_id,
                instance.instance,
                instance.host,
                instance.instance == active,
                stores,
                topics,
            )
            for instance in sorted(instances, key=lambda metadata: metadata.instance != active)
        )

    def store(
        self,
        name: str | StoreQueryParameters,
        *,
        with_timestamps: bool = False,
        timeout_s: float = 60.0,
        is_local: bool = False,
    ) -> Any:
        """Return a read-only view of a store: get, range and all; fetch and fetch_all for windows.

        `name` is the store's name or Kafka's StoreQueryParameters. The first call waits until the
        changelog has been read to its end, at most `timeout_s` seconds. Later calls return
        immediately. With `is_local` the local engine reads the stores of this instance's tasks,
        also uncommitted changes; a read raises InvalidStateStoreError while its task moves. With
        `enable_stale_stores` of StoreQueryParameters it reads standbys, too, and does not wait.

        Raises StreamsError if the store does not exist (with the names of all stores), if it has no
        changelog, if the application has not been started, or after a timeout.
        """
        if isinstance(name, StoreQueryParameters):
            timed = name.queryable_store_type.with_timestamps
            if is_local and name.stale_stores_enabled:
                check_started(self.state, f"store {name.store_name} cannot be read")
                stale = self._local_view(name.store_name, with_timestamps=timed, is_stale=True)
                return name.narrow(stale)
            full_view = self.store(
                name.store_name, with_timestamps=timed, timeout_s=timeout_s, is_local=is_local
            )
            return name.narrow(full_view)
        if name not in visible_stores(self._topology):
            raise unknown_store(self._topology, name)
        check_started(self.state, f"store {name} cannot be read")
        deadline = time.monotonic() + timeout_s
        self.await_running(timeout_s)
        if is_local:
            return self._local_view(name, with_timestamps=with_timestamps)
        with self._lock:
            key = name, with_timestamps
            if key not in self._views:
                self._views[key] = self._open_view(name, with_timestamps=with_timestamps)
            source, view = self._views[key]
        source.await_caught_up(max(0.0, deadline - time.monotonic()))
        return view

    def query(self, request: StateQueryRequest[R], timeout_s: float = 60.0) -> StateQueryResult[R]:
        """Query a store (KIP-796, queries.py). Waits as `store` does."""
        view = self.store(request.store_name, timeout_s=timeout_s)
        return request.answer(view, is_global=request.store_name in self._topology.global_stores)

    def _local_view(self, name: str, *, with_timestamps: bool, is_stale: bool = False) -> StoreView:
        engine, builder = self._runs_on, self._topology.stores.get(name)
        if not isinstance(engine, LocalEngine) or builder is None:
            raise StreamsError(
                f"store {name} cannot be read with is_local=True: this needs a store of tasks, and "
                "engine='local'"
            )
        return view_of(
            builder, engine.stores(name, is_stale=is_stale), with_timestamps=with_timestamps
        )

    def _open_view(self, name: str, *, with_timestamps: bool) -> tuple[ChangelogFeed, StoreView]:
        topology = self._topology
        if name in topology.global_stores:
            return self._open_global(name, with_timestamps=with_timestamps)
        builder = topology.stores[name]
        if not builder.logging_enabled:
            raise StreamsError(f"store {name} has no changelog, from which it could be read")
        topic = changelog_name(self.application_id, name)
        tasks = self._partitions(topic)
        view = empty_view(builder, self._settings.defaults, tasks, with_timestamps=with_timestamps)

        def take(records: list[ConsumedRecord]) -> None:
            changes: list[Change] = [
                (record.partition, record.key or b"", record.value, record.timestamp)
                for record in records
            ]
            view.apply(changes)

        return ChangelogFeed(self._access, topic, tasks, take), view

    def _open_global(self, name: str, *, with_timestamps: bool) -> tuple[ChangelogFeed, StoreView]:
        topology = self._topology
        group = next(
            group
            for group in topology.subtopologies()
            if any(name in topology.connected.get(node.name, ()) for node in group)
        )
        names = {node.name for node in group}
        cut = replace(
            topology,
            nodes={key: node for key, node in topology.nodes.items() if key in names},
            stores={},
            global_stores={name: topology.global_stores[name]},
            connected={key: stores for key, stores in topology.connected.items() if key in names},
        )
        settings = _task_settings(self.application_id, self._settings)
        task = Task(cut, settings, lambda _: None, _now_ms)
        view = view_of(
            topology.global_stores[name], [task.stores[name]], with_timestamps=with_timestamps
        )
        (topic,) = (topic for node in group if isinstance(node, Source) for topic in node.topics)

        def take(records: list[ConsumedRecord]) -> None:
            for record in records:
                row = TopicRecord(
                    record.key,
                    record.value,
                    record.timestamp,
                    record.headers,
                    record.partition,
                    record.offset,
                )
                view.update(lambda row=row: task.add(topic, row))  # type: ignore[misc]

        return ChangelogFeed(self._access, topic, self._partitions(topic), take), view

    def _partitions(self, topic: str) -> int:
        with self._access.brokers(client_id=self.application_id) as brokers:
            return len(brokers.retry(lambda: brokers.topic(topic)).partitions)


def _task_settings(application_id: str, settings: AppSettings) -> TaskSettings:
    arguments: Mapping[str, Any] = {}
    if settings.exception_handlers is not None:
        arguments = {"exception_handlers": settings.exception_handlers}
    return TaskSettings(
        application_id,
        settings.defaults,
        emit_interval_ms=settings.emit_interval_ms,
        additional_retention_ms=settings.windowstore_changelog_additional_retention_ms,
        default_timestamp_extractor=settings.default_timestamp_extractor,
        statestore_cache_max_bytes=settings.statestore_cache_max_bytes,
        app_configs=settings.app_configs,
        **arguments,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

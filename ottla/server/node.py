"""The composition root: one broker, assembled from the ports, started, and stopped.

Only this file knows how the parts fit together. The coordination tree, the controller, the log
directories, the coordinators and the listeners are started in this order, each before the parts
that need it, and stopped in the opposite order. Lives on the event loop that `start` runs on.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial

from ottla.base.clock import Clock, RealClock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.options import Snapshot
from ottla.base.rng import Rng, SystemRng
from ottla.base.tasks import Tasks
from ottla.cluster import features
from ottla.cluster.broker_secret import ensure_broker_secret
from ottla.cluster.features import TRANSACTION_VERSION
from ottla.cluster.image import ClusterImage
from ottla.cluster.options import metrics_options, option_tables
from ottla.cluster.zk.port import Coordination
from ottla.controller import state
from ottla.coordinators.groups.service import OFFSETS_TOPIC, GroupCoordinator
from ottla.coordinators.producer_ids import ProducerIds
from ottla.coordinators.txn import service as transactions
from ottla.coordinators.txn.service import STATE_TOPIC, TransactionCoordinator
from ottla.net.listener import RealNet
from ottla.net.port import Net
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.markers import ClusterMarkers
from ottla.server.brokers.membership import Environment, Membership
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.replication import replica_fetchers
from ottla.server.brokers.transaction_checks import TransactionChecks
from ottla.server.config import broker_loggers
from ottla.server.config.features import Features
from ottla.server.config.store import ConfigStore
from ottla.server.context import Broker
from ottla.server.coordination import BrokerCoordination, SharedTree
from ottla.server.fetch.sessions import FetchSessions
from ottla.server.listeners import Listeners
from ottla.server.loop_lag import LoopWatch
from ottla.server.monitoring.service import MonitoringService
from ottla.server.monitoring.sources import Sources, Stage
from ottla.server.produce.admission import Admission
from ottla.server.produce.heavy_batches import HeavyBatches
from ottla.server.produce.markers import ReplicaMarkers
from ottla.server.produce.partition_writer import ReplicaWriter
from ottla.server.quotas.clients import client_quotas
from ottla.server.telemetry.clients import client_metrics
from ottla.server.transport import apis
from ottla.storage.cleaner import cleaning
from ottla.storage.cleaner.cleaning import Cleaner
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.upkeep import Intervals

_log = logging.getLogger(__name__)

_MAINTENANCE_SECONDS = 1.0
# More than a cluster has brokers; consumers have sessions of their own.
_FOLLOWER_SESSIONS_MAX = 10_000


class Node:
    """One broker. `start` once, `stop` any number of times; a stopped node is not started again.

    The real implementation of a port is used unless another one is passed. A `tree` that is passed
    is shared with other nodes and stays open; otherwise the node opens its own, and stops when it
    can no longer write to it.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        clock: Clock | None = None,
        rng: Rng | None = None,
        files: FileSystem | None = None,
        net: Net | None = None,
        tree: SharedTree | None = None,
    ) -> None:
        parsed = option_tables.parse_broker_settings(settings)
        for warning in parsed.warnings:
            _log.warning("configuration warning=%s", warning)
        self._static = parsed.snapshot
        self._clock = clock or RealClock()
        self._rng = rng or SystemRng()
        self._files = files or RealFileSystem()
        self._net = net or RealNet()
        self._coordination = BrokerCoordination(self._static, self._files, self._clock, tree)
        self._tasks = Tasks(clock=self._clock)
        self._has_replicas = False
        # False once the start has been abandoned.
        self._is_wanted = True
        self._session: Coordination | None = None
        self._listeners = Listeners(self._static)
        self._undo = AsyncExitStack()
        self._stopping: asyncio.Future[None] | None = None
        self._is_serving = False
        self._is_hurried = asyncio.Event()
        self._leaves_leaders = True
        # Why the node stopped by itself: it could keep nothing any more; `on_failure` hears of it.
        self.failure: StorageError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.broker = Broker()
        self.broker.node_id = self._static.integer("node.id")
        self.broker.clock = self._clock
        self.broker.rng = self._rng
        self.broker.tasks = self._tasks
        self.broker.loop_watch = LoopWatch(self._clock, self._listeners.requests_since)
        self._sources = Sources(self.broker, self._files)
        self._sources.tasks.append(self._tasks)
        self._monitoring = MonitoringService(self._sources, self._tasks)

    # -- what others may know ---------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The host at which the first listener is reached from this machine."""
        return self._listeners.host

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self._listeners.port

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.broker.cluster_id

    @property
    def connections_count(self) -> int:
        """The number of connected clients."""
        return self._listeners.connections_count

    @property
    def monitoring_address(self) -> tuple[str, int] | None:
        """The address of /metrics and /healthz; None if metrics.listener is not set."""
        return self._monitoring.address if self._static["metrics.listener"] else None

    @property
    def node_id(self) -> int:
        """The broker's id."""
        return self.broker.node_id

    @property
    def loop_watches(self) -> list[LoopWatch]:
        """What measures how long the event loop is blocked."""
        return [self.broker.loop_watch]

    # -- start ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the broker; returns when clients are served.

        Raises ConfigError or StorageError with a message for the operator; the parts that had been
        started by then are stopped again.
        """
        try:
            await self._start()
            if self.failure is not None:
                raise self.failure
        except BaseException:
            await self._undo.aclose()
            raise
        self._listeners.serve()
        self._is_serving = True
        await self._membership.wait_until_informed()
        self._sources.stage = Stage.RUNNING
        _log.info("broker serves id=%d address=%s:%d", self.node_id, self.host, self.port)

    async def _start(self) -> None:
        broker = self.broker
        self._undo.callback(broker_loggers.restore, broker_loggers.own_levels())
        await self._open_monitoring()
        session = await self._connect()
        broker.cluster_id = await state.ensure_cluster_id(session, self._rng)
        await self._open_channels(session)
        broker.image = ClusterImage(cluster_id=broker.cluster_id)
        broker.advertised_apis = apis.advertised_apis()
        broker.configs = ConfigStore(self._static, broker.node_id, self._tasks)
        self._undo.push_async_callback(self._tasks.close)
        broker.quotas = client_quotas(self._static, self._clock)
        broker.client_metrics = client_metrics(self._static, self._rng)
        broker.configs.on_entity += [
            broker.quotas.settings_changed,
            broker.client_metrics.settings_changed,
        ]
        broker.client_metrics.on_change.append(self._client_metrics_changed)
        await broker.configs.start(session)
        broker.features = Features(features.supported(broker.advertised_apis), self._tasks)
        await broker.features.start(session)
        broker.options = broker.configs.broker
        broker.configs.on_broker.append(self._options_changed)
        broker.configs.on_topic.append(self._topic_changed)
        await self._open_storage()
        # No task may use a log that is being closed.
        self._undo.push_async_callback(self._tasks.close)
        self._start_coordinators()
        broker.fetch_sessions = FetchSessions(
            self._static.integer("max.incremental.fetch.session.cache.slots"),
            clock=self._clock,
            rng=self._rng,
        )
        broker.follower_sessions = FetchSessions(
            _FOLLOWER_SESSIONS_MAX, clock=self._clock, rng=self._rng
        )
        await self._listen()
        self._undo.push_async_callback(self._close_endpoints)
        await self._join_cluster(session)
        self._undo.push_async_callback(broker.controller.stop)
        # A second time, so that responses that need the controller are sent before it stops.
        self._undo.push_async_callback(self._close_endpoints)
        self._tasks.supervise(self._maintain, "maintenance")
        self._tasks.supervise(self._checkpoint_high_watermarks, "high watermark checkpoint")
        if self._static.boolean("log.cleaner.enable"):
            self._sources.cleaner = cleaner_of(broker, files=self._files)
            self._tasks.supervise(self._sources.cleaner.run, "log cleaner")
        self._tasks.supervise(broker.isr_updates.run, "ISR of lagging followers")
        broker.loop_watch.start()
        self._undo.callback(broker.loop_watch.stop)
        # First, while everything still works.
        self._undo.push_async_callback(self._give_up_leaders)

    async def _give_up_leaders(self) -> None:
        if self._leaves_leaders:
            await self._membership.leave(self._is_hurried)

    async def _open_channels(self, session: Coordination) -> None:
        is_proven = self._static.text("inter.broker.authentication") == "secret"
        secret = await ensure_broker_secret(session, self._rng) if is_proven else None
        self.broker.secret = secret
        self._channels = Channels(self._net, self._rng, self.node_id, secret)
        self._sources.ask_leaders(self._channels)

    async def _open_monitoring(self) -> None:
        address = metrics_options.parse_address(self._static.text("metrics.listener"))
        if address is not None:
            await self._monitoring.open(self._net, *address)
            self._undo.push_async_callback(self._monitoring.close)
            self._sources.configure(self._static, self._coordination)

    async def _connect(self) -> Coordination:
        coordination = self._coordination
        coordination.on_failure = partial(self._fail, "the coordination tree cannot be written")
        self._undo.push_async_callback(coordination.close)
        self._session = await coordination.open(self._net, self._rng)
        self._sources.tasks += coordination.tasks
        self._undo.push_async_callback(self._end_session)
        return self._session

    async def _end_session(self) -> None:
        assert self._session is not None
        await self._session.close()

    async def _open_storage(self) -> None:
        """Load the logs off the loop: it takes long after a crash, and signals must be handled."""
        broker = self.broker
        configs = broker.configs
        opening = asyncio.ensure_future(self._files.in_background(self._open_directories))
        try:
            directories = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._is_wanted = False
            await asyncio.wait([opening])
            if opening.exception() is None:
                opening.result().abandon()
            raise
        broker.replicas = Replicas(
            broker.node_id,
            directories,
            clock=self._clock,
            files=self._files,
            tasks=self._tasks,
            topic_options=configs.topic,
            image=lambda: broker.image,
        )
        directories.upkeep.intervals = Intervals.from_options(self._static)
        broker.replicas.move_bytes_per_second = lambda: broker.options.integer(
            "replica.alter.log.dirs.io.max.bytes.per.second"
        )
        broker.replicas.fetchers = replica_fetchers(
            broker, self._channels, clock=self._clock, tasks=self._tasks
        )
        self._has_replicas = True
        broker.heavy_batches = HeavyBatches(self._files, self._clock)
        self._undo.push_async_callback(self._close_storage)

    def _open_directories(self) -> LogDirectories:
        configs = self.broker.configs
        return LogDirectories.open(
            self._static.strings("log.dirs"),
            files=self._files,
            clock=self._clock,
            rng=self._rng,
            cluster_id=self.broker.cluster_id,
            broker_id=self.broker.node_id,
            topic_config=lambda topic: LogConfig.from_options(configs.topic(topic)),
            on_offline=self._directory_failed,
            is_wanted=lambda: self._is_wanted,
        )

    async def _close_storage(self) -> None:
        replicas = self.broker.replicas
        if replicas.fetchers is not None:
            replicas.fetchers.close()
        await replicas.checkpoint_high_watermarks_in_background()
        try:
            await replicas.directories.close_in_background(self._files)
        except StorageError as error:
            _log.error("log directories not closed cleanly error=%s", error)

    def _directory_failed(self, path: str, error: StorageError) -> None:
        # One that fails while the directories are opened has no replicas yet.
        if self._has_replicas:
            self.broker.replicas.directory_offline(path, error)
            if self.broker.replicas.directories.is_lost:
                self._fail("every log directory has failed", error)

    def _fail(self, reason: str, error: StorageError) -> None:
        """Stop, as Kafka does: a broker that cannot store anything hinders the brokers that can."""
        if self._stopping is not None:
            return
        _log.critical("broker stops reason=%r error=%s", reason, error)
        self.failure = error
        if self._is_serving:
            self._begin_stop()
            self.on_failure()

    def _start_coordinators(self) -> None:
        broker = self.broker
        broker.producer_ids = ProducerIds(broker.node_id, self._current_session, self._tasks)
        writer = ReplicaWriter(broker.replicas, self._clock)
        broker.groups = GroupCoordinator(
            writer=writer,
            clock=self._clock,
            rng=self._rng,
            tasks=self._tasks,
            options=lambda: broker.options,
            image=lambda: broker.image,
            group_options=lambda group_id: broker.configs.group(group_id),
        )
        broker.groups.in_background = self._files.in_background
        broker.markers = ReplicaMarkers(broker.replicas, broker.groups, self._clock)
        peers = Peers(broker, self._channels, "transactions")
        self._undo.callback(peers.close)
        markers = ClusterMarkers(broker, peers, broker.markers, self._tasks)
        broker.transactions = TransactionCoordinator(
            writer=writer,
            markers=markers,
            producer_ids=broker.producer_ids,
            clock=self._clock,
            tasks=self._tasks,
            now=transactions.Environment(
                options=lambda: broker.options,
                image=lambda: broker.image,
                version=lambda: broker.features.level(TRANSACTION_VERSION),
            ),
        )
        broker.admission = Admission(
            broker.transactions,
            self._tasks,
            lambda: broker.options,
            TransactionChecks(broker, peers, self._tasks),
        )
        broker.replicas.on_leading.append(self._leading)
        broker.replicas.on_ceasing.append(self._ceasing)

    def _current_session(self) -> Coordination:
        return self.broker.controller.session

    def _leading(self, partition: Partition) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.broker.groups.load(partition.partition, partition.leader_epoch)
        elif partition.topic == STATE_TOPIC:
            self.broker.transactions.load(partition.partition, partition.leader_epoch)

    def _ceasing(self, partition: Partition) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.broker.groups.unload(partition.partition)
        elif partition.topic == STATE_TOPIC:
            self.broker.transactions.unload(partition.partition)

    async def _listen(self) -> None:
        await self._listeners.open(
            self.broker, self._sources, net=self._net, files=self._files, tasks=self._tasks
        )

    async def _join_cluster(self, session: Coordination) -> None:
        membership = self._membership = Membership(
            self.broker,
            Environment(
                clock=self._clock,
                rng=self._rng,
                net=self._net,
                tasks=self._tasks,
                options=self._static,
                channels=self._channels,
                connect=self._new_session,
            ),
        )
        self._undo.callback(membership.close)
        await membership.join(session, self._listeners.advertised_endpoints())

    async def _new_session(self) -> Coordination:
        self._session = await self._coordination.session()
        return self._session

    # -- while it runs ----------------------------------------------------------------------------

    def _options_changed(self, snapshot: Snapshot) -> None:
        self.broker.options = snapshot
        self._listeners.limit(snapshot)
        self.broker.replicas.update_configs()

    def _client_metrics_changed(self, is_any_asked_for: bool) -> None:
        apis_now = apis.advertised_apis(with_client_metrics=is_any_asked_for)
        self.broker.advertised_apis = apis_now

    def _topic_changed(self, topic: str, _: Snapshot) -> None:
        self.broker.replicas.update_configs(topic)

    async def _maintain(self) -> None:
        """Every second, write checkpoints, apply retention and flush as far as it is due."""
        while True:
            await self._clock.sleep(_MAINTENANCE_SECONDS)
            await self.broker.replicas.directories.upkeep.maintain()

    async def _checkpoint_high_watermarks(self) -> None:
        milliseconds = self._static.integer("replica.high.watermark.checkpoint.interval.ms")
        while True:
            await self._clock.sleep(milliseconds / 1000)
            await self.broker.replicas.checkpoint_high_watermarks_in_background()

    # -- stop -------------------------------------------------------------------------------------

    async def stop(self, *, with_cluster: bool = False) -> None:
        """Stop: give up the leaders, send pending responses, flush the logs.

        If all brokers of the cluster stop (`with_cluster`), the leaders stay: no broker could take
        them over. Idempotent, also when called concurrently.
        """
        self._leaves_leaders = not with_cluster
        await asyncio.shield(self._begin_stop())

    def hurry(self) -> None:
        """Stop waiting for clients and other brokers during the shutdown; all data is still written."""
        self._is_hurried.set()
        self._listeners.hurry()

    def _begin_stop(self) -> "asyncio.Future[None]":
        if self._stopping is None:
            self._sources.stage = Stage.STOPPING
            self._stopping = asyncio.ensure_future(self._undo.aclose())
        return self._stopping

    async def _close_endpoints(self) -> None:
        await self._listeners.stop_accepting()
        self.broker.replicas.finish_waiting()
        self.broker.transactions.close()
        self.broker.groups.close()
        await self._listeners.close()


def cleaner_of(broker: Broker, *, files: FileSystem) -> Cleaner:
    """Return the log cleaner of a broker, which follows its options."""
    return Cleaner(
        broker.replicas.directories,
        files=files,
        clock=broker.clock,
        settings=lambda: cleaning.Settings.from_options(broker.options),
    )

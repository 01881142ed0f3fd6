"""The life of one broker: started from the ports, and stopped.

`server.composition` knows how the parts fit together. The coordination tree, the controller, the
log directories, the coordinators and the listeners are started in this order, each before the parts
that need it, and stopped in the opposite order. Lives on the event loop that `start` runs on.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.clock import Clock, RealClock
from ottla.base.errors import ConfigError, OttlaError, StorageError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.base.rng import Rng, SystemRng
from ottla.base.tasks import Tasks
from ottla.cluster.broker_secret import BrokerSecret
from ottla.cluster.image import Endpoint
from ottla.cluster.options import metrics_options, option_tables
from ottla.cluster.zk.port import Coordination
from ottla.controller import state
from ottla.net.listener import RealNet
from ottla.net.port import Net
from ottla.replication.replicas import Replicas
from ottla.server.brokers.membership import BrokerMembership, Environment
from ottla.server.brokers.peers import Peers
from ottla.server.composition import Composition, Identity, Settings
from ottla.server.config import broker_loggers
from ottla.server.context import Broker
from ottla.server.coordination.tree import BrokerCoordination, SharedTree
from ottla.server.coordinators import coordinators_of
from ottla.server.current import Current
from ottla.server.listeners import Listeners
from ottla.server.loop_lag import LoopWatch
from ottla.server.monitoring.sources import Sources, Stage
from ottla.server.transport.dispatch import Dispatcher

if TYPE_CHECKING:
    from ottla.server.monitoring import service as monitoring
else:
    # Only a broker with a monitoring port needs its pages.
    monitoring = deferred_module("ottla.server.monitoring.service")

_log = logging.getLogger(__name__)

_MAINTENANCE_SECONDS = 1.0


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
        for warning in option_tables.exposure_warnings(parsed.snapshot) + parsed.warnings:
            _log.warning("configuration warning=%s", warning)
        self._static = parsed.snapshot
        self._node_id = self._static.integer("node.id")
        self._clock = clock or RealClock()
        self._rng = rng or SystemRng()
        self._files = files or RealFileSystem()
        self._net = net or RealNet()
        self._coordination = BrokerCoordination(self._static, self._files, self._clock, tree)
        self._tasks = Tasks(clock=self._clock)
        self._composition = Composition(
            node_id=self._node_id,
            options=self._static,
            clock=self._clock,
            rng=self._rng,
            files=self._files,
            net=self._net,
            tasks=self._tasks,
        )
        # False once the start has been abandoned.
        self._is_wanted = True
        self._session: Coordination | None = None
        self._listeners = Listeners(self._static)
        self._undo = AsyncExitStack()
        self._stopping: asyncio.Future[None] | None = None
        self._is_serving = False
        self._is_hurried = asyncio.Event()
        self._leaves_leaders = True
        # Set if the node stopped by itself, because it cannot store data or another process has its
        # id; calls `on_failure`.
        self.failure: OttlaError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._replicas: Replicas | None = None
        self._membership: BrokerMembership | None = None
        self._broker: Broker | None = None
        self._loop_watch = LoopWatch(self._clock, self._listeners.requests_since)
        self.sources = Sources(self._node_id, self._clock, self._files, self._loop_watch)
        self.sources.tasks.append(self._tasks)
        self._monitoring: monitoring.MonitoringService | None = None

    # -- properties -------------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        """The broker as request handlers see it; only after the node has started."""
        assert self._broker is not None, "the node has not started"
        return self._broker

    @property
    def has_broker(self) -> bool:
        """True once `start` has constructed `broker`."""
        return self._broker is not None

    @property
    def task_failures(self) -> Counter[str]:
        """The number of unexpected exceptions of the broker's background tasks, by kind."""
        return self._tasks.failures

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The listeners, with the addresses at which they are reached from this machine."""
        return self._listeners.local_endpoints()

    @property
    def advertised_endpoints(self) -> Sequence[Endpoint]:
        """The listeners, with the addresses that clients find in the metadata."""
        return self._listeners.advertised_endpoints()

    @property
    def host(self) -> str:
        """The host at which the first listener is reached from this machine."""
        return self.endpoints[0].host

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.endpoints[0].port

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
        return None if self._monitoring is None else self._monitoring.address

    @property
    def node_id(self) -> int:
        """The broker's id."""
        return self._node_id

    @property
    def loop_watches(self) -> list[LoopWatch]:
        """The watches that measure how long the event loop is blocked."""
        return [self._loop_watch]

    # -- start ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the broker; returns when clients are served.

        Raises ConfigError or StorageError with a message for the operator; the parts that had been
        started by then are stopped again.
        """
        try:
            handler = await self._start()
            if self.failure is not None:
                raise self.failure
        except BaseException:
            await self._undo.aclose()
            raise
        self._listeners.serve(handler, self._clock.monotonic, self.broker.audit)
        self._is_serving = True
        assert self._membership is not None
        await self._membership.wait_until_informed()
        self.sources.stage = Stage.RUNNING
        _log.info("broker serves id=%d address=%s:%d", self.node_id, self.host, self.port)

    async def _start(self) -> Dispatcher:
        self._loop_watch.start()
        self._undo.callback(self._loop_watch.stop)
        self._undo.callback(broker_loggers.restore, broker_loggers.own_levels())
        await self._open_monitoring()
        session = await self._connect()
        cluster_id = await state.ensure_cluster_id(session, self._rng)
        self._undo.push_async_callback(self._tasks.close)
        secret = await self._composition.secret(session)
        settings = self._composition.settings(cluster_id, self._listeners.security)
        await settings.audit.open()
        self._undo.push_async_callback(settings.audit.close)
        await settings.start(session, self._rng)
        settings.configs.on_broker.append(partial(self._options_changed, settings.current))
        self.sources.certificates = await self._composition.certificates(settings)
        replicas = await self._open_storage(settings, cluster_id)
        # No task may use a log that is being closed.
        self._undo.push_async_callback(self._tasks.close)
        environment = self._composition.environment(
            settings, replicas, secret, self.sources.certificates
        )
        broker = await self._assemble(session, settings, environment, Identity(cluster_id, secret))
        handler = Dispatcher(broker, self._tasks)
        handler.enforce(broker.quotas)
        if environment.authorizer is not None:
            await environment.authorizer.store.start(session)
            handler.authorize_by(environment.authorizer)
        self.sources.assembled(broker, handler, environment.channels)
        await self._join_cluster()
        self._start_upkeep(broker)
        return handler

    async def _assemble(
        self,
        session: Coordination,
        settings: Settings,
        environment: Environment,
        identity: Identity,
    ) -> Broker:
        """Bind the listeners, and construct the broker that will handle their requests."""
        replicas = environment.replicas
        peers = Peers(settings.current, environment.channels, "transactions")
        self._undo.callback(peers.close)
        self._undo.push_async_callback(self._close_endpoints)
        await self._listeners.open(
            replicas.directories,
            settings.quotas,
            self.sources,
            net=self._net,
            files=self._files,
            tasks=self._tasks,
        )
        self._listeners.limit(settings.current.options, self._net, self._tasks)
        coordinators = coordinators_of(
            environment, peers, self._current_session, is_mixed=identity.secret is None
        )
        membership = self._membership = BrokerMembership(
            session,
            self._new_session,
            self._listeners.advertised_endpoints(),
            coordinators.groups,
            environment,
        )
        membership.on_deposed = self._deposed
        self._undo.callback(membership.close)
        if settings.tokens is not None:
            membership.controller.on_new_session.append(settings.tokens.start)
        if identity.secret is not None:
            membership.controller.on_new_session.append(identity.secret.start)
            self._follow_secret(identity.secret, settings)
        self._composition.connect_fetchers(environment, membership)
        self._broker = self._composition.broker(
            identity, settings, replicas, coordinators, membership, self._listeners
        )
        return self._broker

    def _follow_secret(self, secret: BrokerSecret, settings: Settings) -> None:
        """Replace the secret when the options ask for it, and disconnect those with a former one."""

        def want(options: Snapshot) -> None:
            secret.want(options.integer("inter.broker.secret.generation"))

        secret.on_retired = self._listeners.disconnect_brokers
        settings.configs.on_broker.append(want)
        want(settings.current.options)

    async def _join_cluster(self) -> None:
        assert self._membership is not None
        await self._membership.join()
        self._undo.push_async_callback(self._membership.controller.stop)
        # A second time, so that responses that need the controller are sent before it stops.
        self._undo.push_async_callback(self._close_endpoints)

    def _start_upkeep(self, broker: Broker) -> None:
        milliseconds = self._static.integer("replica.high.watermark.checkpoint.interval.ms")
        self._tasks.supervise(partial(_maintain, broker.replicas, self._clock), "maintenance")
        self._tasks.supervise(
            partial(_checkpoint_high_watermarks, broker.replicas, self._clock, milliseconds),
            "high watermark checkpoint",
        )
        if self._static.boolean("log.cleaner.enable"):
            self.sources.cleaner = self._composition.cleaner(broker)
            self._tasks.supervise(self.sources.cleaner.run, "log cleaner")
        self._tasks.supervise(broker.isr_updates.run, "ISR of lagging followers")
        # First, while everything still works.
        self._undo.push_async_callback(self._give_up_leaders)

    async def _give_up_leaders(self) -> None:
        if self._leaves_leaders and self._membership is not None:
            await self._membership.leave(self._is_hurried)

    async def _open_monitoring(self) -> None:
        if address := metrics_options.parse_address(self._static.text("metrics.listener")):
            self._monitoring = monitoring.MonitoringService(self.sources, self._tasks, self._static)
            await self._monitoring.open(self._net, *address)
            self._undo.push_async_callback(self._monitoring.close)
            self.sources.configure(self._static, self._coordination)

    async def _connect(self) -> Coordination:
        coordination = self._coordination
        coordination.on_failure = partial(self._fail, "the coordination tree cannot be written")
        self._undo.push_async_callback(coordination.close)
        self._session = await coordination.open(self._net, self._rng)
        self.sources.tasks += coordination.tasks
        self._undo.push_async_callback(self._end_session)
        return self._session

    async def _end_session(self) -> None:
        assert self._session is not None
        await self._session.close()

    async def _open_storage(self, settings: Settings, cluster_id: str) -> Replicas:
        """Load the logs off the loop: it takes long after a crash, and signals must be handled."""
        load = partial(
            self._composition.open_directories,
            settings.configs,
            cluster_id,
            self._directory_failed,
            lambda: self._is_wanted,
        )
        opening = asyncio.ensure_future(self._files.in_background(load))
        try:
            directories = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._is_wanted = False
            await asyncio.wait([opening])
            if opening.exception() is None:
                opening.result().abandon()
            raise
        replicas = self._replicas = self._composition.replicas(directories, settings)
        self._undo.push_async_callback(partial(self._close_storage, replicas))
        return replicas

    async def _close_storage(self, replicas: Replicas) -> None:
        if replicas.fetchers is not None:
            replicas.fetchers.close()
        await replicas.checkpoint_high_watermarks_in_background()
        try:
            await replicas.directories.close_in_background(self._files)
        except StorageError as error:
            _log.error("log directories not closed cleanly error=%s", error)

    def _directory_failed(self, path: str, error: StorageError) -> None:
        # One that fails while the directories are opened has no replicas yet.
        if self._replicas is not None:
            self._replicas.directory_offline(path, error)
            if self._replicas.directories.is_lost:
                reason = f"{error}".removeprefix(f"{error.directory}: ").rstrip(".")
                advice = "check the disk, its free space and its permissions, then start again."
                lost = StorageError(path, f"{reason}. No log directory is left: {advice}")
                self._fail("every log directory has failed", lost)

    def _deposed(self, error: ConfigError) -> None:
        # The leaders are the other process's now.
        self._leaves_leaders = False
        self._fail("another process has this broker's id", error)

    def _fail(self, reason: str, error: OttlaError) -> None:
        """Stop, as Kafka does: a broker that cannot store anything hinders the brokers that can."""
        if self._stopping is not None:
            return
        _log.critical("broker stops reason=%r error=%s", reason, error)
        self.failure = error
        if self._is_serving:
            self._begin_stop()
            self.on_failure()

    def _current_session(self) -> Coordination:
        assert self._membership is not None
        return self._membership.controller.session

    async def _new_session(self) -> Coordination:
        self._session = await self._coordination.session()
        return self._session

    # -- while it runs ----------------------------------------------------------------------------

    def _options_changed(self, current: Current, snapshot: Snapshot) -> None:
        current.options = snapshot
        self._listeners.limit(snapshot, self._net, self._tasks)

    # -- stop -------------------------------------------------------------------------------------

    async def stop(self, *, with_cluster: bool = False) -> None:
        """Stop: give up the leaders, send pending responses, flush the logs.

        If all brokers of the cluster stop (`with_cluster`), the leaders stay: no broker could take
        them over. Idempotent, also when called concurrently.
        """
        self._leaves_leaders = not with_cluster
        await asyncio.shield(self._begin_stop())

    def hurry(self) -> None:
        """Stop waiting for clients and other brokers while stopping; all data is still written."""
        self._is_hurried.set()
        self._listeners.hurry()

    def _begin_stop(self) -> "asyncio.Future[None]":
        if self._stopping is None:
            self.sources.stage = Stage.STOPPING
            self._stopping = asyncio.ensure_future(self._undo.aclose())
        return self._stopping

    async def _close_endpoints(self) -> None:
        await self._listeners.stop_accepting()
        if self._broker is not None:
            self._broker.replicas.finish_waiting()
            self._broker.transactions.close()
            self._broker.groups.close()
        await self._listeners.close()


async def _maintain(replicas: Replicas, clock: Clock) -> None:
    """Every second, write checkpoints, apply retention and flush as far as it is due."""
    while True:
        await clock.sleep(_MAINTENANCE_SECONDS)
        await replicas.directories.upkeep.maintain()


async def _checkpoint_high_watermarks(replicas: Replicas, clock: Clock, milliseconds: int) -> None:
    while True:
        await clock.sleep(milliseconds / 1000)
        await replicas.checkpoint_high_watermarks_in_background()

"""Real brokers inside the test process: isolated, on free ports, started in milliseconds.

    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders", replication_factor=3)
        cluster.kill(cluster.leader("orders"))

Each broker runs on its own event loop and thread, so a test may block, run its own event loop, or
use any client, and a broker that is paused or slow does not slow down the others. The defaults are
Kafka's, except those that would make tests wait: the first rebalance of a group is not delayed, and
a silent broker's session ends after two seconds.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from ottla.base.errors import OttlaError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.client.admin import scram
from ottla.cluster.options.option_tables import refuse_unknown_names
from ottla.server.node import Node
from ottla.testing.broker_disk import BrokerDisk
from ottla.testing.broker_net import BrokerNet, NetworkCuts
from ottla.testing.broker_thread import BrokerThread
from ottla.testing.cluster_state import (
    controller_of,
    found,
    is_in_sync,
    leader_of,
    wait_for_user,
    wait_until_introduced,
)
from ottla.testing.cluster_topics import ClusterTopics
from ottla.testing.faults.client_faults import ClientFaults
from ottla.testing.listeners import ClusterListeners
from ottla.testing.option_values import OptionValue, option_texts
from ottla.testing.secured import MECHANISM, ClientSettings, ClusterSecurity
from ottla.testing.tree_thread import BrokerSessions, TreeThread
from ottla.testing.volatile import VolatileFileSystem

# Tests do not wait for further group members (Kafka: 3 s), nor long for silent brokers (Kafka: 18
# s).
TEST_OPTIONS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "zookeeper.session.timeout.ms": "2000",
}


class Cluster(ClusterTopics):
    """A cluster of `brokers`, with ids from 1; a context manager, with and without `async`.

    `options` are broker options by their Kafka names: texts, numbers and booleans. `start` rejects
    unknown names. `data` is a directory that is kept. Without it the records are in a temporary
    directory that is never synced and that `stop` removes. Methods may be called from any thread.
    `stop` is idempotent, and a stopped cluster can be started again, on the same ports.

    `security` is `ssl`, `sasl_plaintext` or `sasl_ssl`: the first listener has that protocol, and
    `client_settings` returns the options that a client needs for it.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        options: Mapping[str, OptionValue] | None = None,
        data: str | Path | None = None,
        security: str | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster has at least one broker, not {brokers}")
        texts = option_texts(options or {})
        self._security = ClusterSecurity(security, texts)
        self.options = {**TEST_OPTIONS, **self._security.options(), **texts}
        self.brokers = tuple(range(1, brokers + 1))
        self._is_temporary = data is None
        self.data = Path(tempfile.gettempdir() if data is None else data)
        self._listeners = ClusterListeners(self.brokers)
        self._lock = threading.RLock()
        self._running: dict[int, BrokerThread] = {}
        self._cuts = NetworkCuts()
        self._tree: TreeThread | None = None
        self._sessions: dict[int, BrokerSessions] = {}
        self._cluster_id = ""
        self._is_started = False
        self.faults = ClientFaults(self)
        """Faults that clients see: errors, latency, cut connections, a full disk, moved leaders."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers' first listeners, as host:port,host:port; also of those that
        are down.
        """
        self._refuse_unless_running()
        return self._listeners.bootstrap(self._listeners.first.listener)

    def bootstrap_of(self, listener: str) -> str:
        """Return the addresses of one listener of all brokers, by its name in `listeners`.

        >>> listeners = "PLAINTEXT://127.0.0.1:0,INNER://127.0.0.1:0"
        >>> protocols = "INNER:PLAINTEXT"
        >>> options = {"listeners": listeners, "listener.security.protocol.map": protocols}
        >>> with Cluster(options=options) as cluster:
        ...     cluster.bootstrap_of("INNER") == cluster.bootstrap
        False
        """
        self._refuse_unless_running()
        return self._listeners.bootstrap(listener)

    def client_settings(self, user: str = "user") -> ClientSettings:
        """Return the settings of clients of a user, who is created if no user has this name.

        Without `security` they have the address only. With `ssl` the user is the name in the
        client's certificate.

        >>> with Cluster(security="sasl_plaintext") as cluster:
        ...     settings = cluster.client_settings("anna")
        ...     settings.librdkafka["sasl.username"], settings.kafka_python["sasl_mechanism"]
        ('anna', 'SCRAM-SHA-512')
        """
        return self._security.settings(user, self.bootstrap, self._create_user)

    def _create_user(self, user: str, password: str) -> None:
        with self.admin() as brokers:
            row = scram.ScramUpsertion(user, scram.mechanism_of(MECHANISM), password)
            scram.alter_user_scram_credentials(brokers, [row])
        wait_for_user(self._live_nodes(), user)

    @property
    def host(self) -> str:
        """The host name or address of the first listener."""
        self._refuse_unless_running()
        return self._listeners.first.host

    @property
    def port(self) -> int:
        """The port of the first broker's first listener; the same after a restart."""
        self._refuse_unless_running()
        return self._listeners.first.port

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, generated on its first start."""
        self._refuse_unless_running()
        return self._cluster_id

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> "Cluster":
        """Start all brokers and return when they serve clients, and the metadata names them all.

        Raises ConfigError or StorageError.
        """
        with self._lock:
            if not self._is_started:
                refuse_unknown_names(self.options)
                if self._is_temporary and not self._has_own_folder():
                    self.data = Path(tempfile.mkdtemp(prefix="ottla-"))
                try:
                    self._start_brokers(self.brokers)
                except (OttlaError, OSError):
                    self._stop_all()
                    self._forget_data()
                    raise
                self._is_started = True
                self._cluster_id = self._live_nodes()[0].cluster_id
                wait_until_introduced(self._live_nodes())
        return self

    def stop(self) -> None:
        """Stop cleanly and remove temporary data; idempotent."""
        with self._lock:
            try:
                self._stop_all()
            finally:
                self._forget_data()

    def restart(self, broker: int | None = None) -> None:
        """Stop a broker cleanly, unless it is down, and start it with the same data on the same
        port.

        Restarts the whole cluster if `broker` is omitted.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.kill(3)
        ...     cluster.restart(3)
        ...     cluster.live_brokers
        (1, 2, 3)
        """
        with self._lock:
            if broker is None:
                self._stop_all()
                self.start()
                return
            self._refuse_unless_known(broker)
            running = self._running.pop(broker, None)
            if running is not None:
                _stop([running], self._cuts)
            self._start_brokers([broker])

    # -- faults -----------------------------------------------------------------------------------

    @property
    def live_brokers(self) -> tuple[int, ...]:
        """The ids of the brokers that have not been killed; paused and isolated ones are alive."""
        return tuple(sorted(self._running))

    def kill(self, broker: int) -> None:
        """End a broker like `kill -9`: nothing is flushed, and its session ends after its timeout.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.create_topic("orders", replication_factor=3)
        ...     cluster.kill(cluster.leader("orders"))
        ...     len(cluster.live_brokers)
        2
        """
        with self._lock:
            running = self._thread_of(broker)
            if broker in self._sessions:
                self._sessions[broker].suspend()
            self._running.pop(broker)
            running.kill()
            self._cuts.remove(running.net)

    def pause(self, broker: int) -> None:
        """Stop a broker from doing anything, like SIGSTOP, until `resume`; its session times out.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.pause(2)
        ...     cluster.resume(2)
        """
        running = self._thread_of(broker)
        if broker in self._sessions:
            self._sessions[broker].suspend()
        running.pause()

    def resume(self, broker: int) -> None:
        """Let a paused broker continue."""
        self._thread_of(broker).resume()
        if broker in self._sessions:
            self._sessions[broker].resume()

    def isolate(self, broker: int) -> None:
        """Cut a broker from the other brokers and the coordination; clients still reach it.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.isolate(1)
        ...     cluster.heal(1)
        """
        self._thread_of(broker)
        self._sessions_of(broker).suspend()
        self._cuts.isolate(broker)

    def heal(self, broker: int) -> None:
        """End the isolation of a broker; what its connections carried is delivered late."""
        self._cuts.heal(broker)
        self._sessions_of(broker).resume()

    def expire_session(self, broker: int) -> None:
        """End a broker's session with the coordination; a live broker registers again.

        After `kill` the others need not wait for the timeout of the session.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.expire_session(1)
        ...     cluster.kill(2)
        ...     cluster.expire_session(2)
        """
        self._refuse_unless_known(broker)
        self._sessions_of(broker).expire()

    def threads(self) -> dict[int, BrokerThread]:
        """Return the threads of the live brokers, by id."""
        return dict(self._running)

    def slow_disk(self, broker: int, seconds: float) -> None:
        """Let each write and sync of a broker take `seconds` longer; 0 ends it.

        >>> with Cluster(brokers=3) as cluster:
        ...     cluster.slow_disk(1, 0.01)
        ...     cluster.slow_disk(1, 0)
        """
        self._thread_of(broker).disk.delay_seconds = seconds

    # -- topics and state -------------------------------------------------------------------------

    def leader(self, topic: str, partition: int = 0, *, timeout_seconds: float = 30.0) -> int:
        """Return the broker that leads a partition, according to a live broker; waits for one.

        Raises OttlaError if there is no leader within the timeout.
        """
        lack = f"{topic}-{partition} has no leader"
        return found(lambda: leader_of(self._nodes(), topic, partition), lack, timeout_seconds)

    def controller(self, *, timeout_seconds: float = 30.0) -> int:
        """Return the broker that is the controller; waits for one, raises OttlaError without one."""
        lack = "There is no controller"
        return found(lambda: controller_of(self._nodes()), lack, timeout_seconds)

    def node(self, broker: int) -> Node:
        """Return the server of a live broker, to observe its state; OttlaError if it is down."""
        return self._thread_of(broker).node

    def wait_in_sync(self, topic: str, *, timeout_seconds: float = 30.0) -> None:
        """Return when all replicas of a topic are in sync; OttlaError after the timeout."""
        found(
            lambda: is_in_sync(self._live_nodes(), topic) or None,
            f"{topic} is not in sync",
            timeout_seconds,
        )

    @property
    def plain_bootstrap(self) -> str:
        """The addresses of a listener without security, if there is one; of the first otherwise."""
        return self.bootstrap_of(self._listeners.plain)

    def __enter__(self) -> "Cluster":
        """Start the cluster."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster."""
        self.stop()

    async def __aenter__(self) -> "Cluster":
        """Start the cluster without blocking the caller's event loop."""
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster without blocking the caller's event loop."""
        await asyncio.to_thread(self.stop)

    # -- inside -----------------------------------------------------------------------------------

    def _nodes(self) -> dict[int, Node]:
        return {broker: running.node for broker, running in sorted(self._running.items())}

    def _live_nodes(self) -> list[Node]:
        return list(self._nodes().values())

    def _refuse_unless_running(self) -> None:
        if not self._is_started:
            raise OttlaError("The cluster is not running: use `with Cluster() as cluster`.")

    def _refuse_unless_known(self, broker: int) -> None:
        self._refuse_unless_running()
        if broker not in self.brokers:
            raise OttlaError(f"There is no broker {broker}: the cluster has {self.brokers}.")

    def _thread_of(self, broker: int) -> BrokerThread:
        self._refuse_unless_known(broker)
        if broker not in self._running:
            raise OttlaError(f"Broker {broker} is down: start it with restart({broker}).")
        return self._running[broker]

    def _sessions_of(self, broker: int) -> BrokerSessions:
        if broker not in self._sessions:
            raise OttlaError("A cluster of one broker has nothing to be cut from: use brokers=3.")
        return self._sessions[broker]

    def _start_brokers(self, numbers: Sequence[int]) -> None:
        if self._tree is None and len(self.brokers) > 1:
            files: FileSystem = VolatileFileSystem() if self._is_temporary else RealFileSystem()
            self._tree = TreeThread(files, str(self.data / "coordination"))
            self._tree.start()
        threads = {}
        for number in numbers:
            if self._tree is not None:
                self._sessions[number] = BrokerSessions(self._tree)
            net = BrokerNet(number, self._cuts)
            self._cuts.add(net)
            threads[number] = BrokerThread(
                self._settings(number),
                BrokerDisk(is_temporary=self._is_temporary),
                net,
                self._sessions.get(number),
            )
            threads[number].begin()
        failure: OttlaError | OSError | None = None
        for number, thread in threads.items():
            try:
                thread.finish_start()
            except (OttlaError, OSError) as error:
                failure = failure or error
                continue
            self._running[number] = thread
            self._listeners.started(number, thread.node.endpoints)
            self.faults.started(number, thread)
        if failure is not None:
            raise failure

    def _settings(self, number: int) -> dict[str, str]:
        is_single = len(self.brokers) == 1
        own = {} if is_single else {"node.id": str(number)}
        return {
            "log.dirs": str(self.data if is_single else self.data / f"broker{number}"),
            **own,
            **self.options,
            "listeners": self._listeners.option(number, self.options.get("listeners")),
        }

    def _has_own_folder(self) -> bool:
        return self.data != Path(tempfile.gettempdir())

    def _stop_all(self) -> None:
        running, self._running = self._running, {}
        self._is_started = False
        for broker in running:
            self._cuts.heal(broker)
        try:
            _stop(running.values(), self._cuts, with_cluster=True)
        finally:
            tree, self._tree = self._tree, None
            self._sessions.clear()
            if tree is not None:
                tree.stop()

    def _forget_data(self) -> None:
        if self._is_temporary and self._has_own_folder():
            shutil.rmtree(self.data, ignore_errors=True)
            self.data = Path(tempfile.gettempdir())
            self._security.forget_users()


def _stop(
    threads: Collection[BrokerThread], cuts: NetworkCuts, *, with_cluster: bool = False
) -> None:
    """Stop brokers together; raises the first failure after all have ended."""
    for thread in threads:
        thread.begin_stop(with_cluster=with_cluster)
    failure: OttlaError | OSError | None = None
    for thread in threads:
        try:
            thread.finish_stop()
        except (OttlaError, OSError) as error:
            failure = failure or error
        finally:
            cuts.remove(thread.net)
    if failure is not None:
        raise failure

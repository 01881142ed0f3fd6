"""The broker's access to the tree of its cluster, and the sessions that it starts there.

The settings decide: a ZooKeeper ensemble (`zookeeper.connect`); a tree that the brokers of this
machine share (`coordination.listener`); else a tree of this broker alone, in its own process.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError, StorageError
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.options.metrics_options import parse_address
from ottla.cluster.options.roles import refuse_separate_cluster
from ottla.cluster.options.security.exposure import reached
from ottla.cluster.zk.embedded import SESSION_TIMEOUT_MS, EmbeddedTree, TreeSize
from ottla.cluster.zk.measured import MeasuredSession, SessionProbe
from ottla.cluster.zk.port import ConnectionSuspended, Coordination, EnsembleUnreachable
from ottla.net.port import Net
from ottla.server.coordination.directory import tree_directory

if TYPE_CHECKING:
    from ottla.cluster import secured_znodes
    from ottla.cluster.zk import live, standby, tls, tree_login
    from ottla.security.zookeeper.login import Login
else:
    # Only a broker that shares its tree, or one on a ZooKeeper, needs them.
    live = deferred_module("ottla.cluster.zk.live")
    secured_znodes = deferred_module("ottla.cluster.secured_znodes")
    standby = deferred_module("ottla.cluster.zk.standby")
    tls = deferred_module("ottla.cluster.zk.tls")
    tree_login = deferred_module("ottla.cluster.zk.tree_login")


class SharedTree(Protocol):
    """A tree of the same process that other brokers use too."""

    def session(self, timeout_ms: int = SESSION_TIMEOUT_MS) -> Coordination:
        """Start a session."""
        ...


class BrokerCoordination:
    """One broker's access to its cluster's tree: call `open` first, then any number of sessions.

    `on_failure` is called when a tree that this process holds can no longer be written. `tasks` are
    the tasks of the tree in this process, and of the standby, for monitoring.
    """

    def __init__(
        self, options: Snapshot, files: FileSystem, clock: Clock, tree: SharedTree | None = None
    ) -> None:
        self.on_failure: Callable[[StorageError], None] = lambda error: None
        self.tasks: list[Tasks] = []
        # The figures of the sessions, for monitoring.
        self.probe = SessionProbe()
        self._options = options
        self._files = files
        self._clock = clock
        self._tree = tree
        self._own_tree: EmbeddedTree | None = None
        self._standby: standby.StandbyServer | None = None
        self._servers = ""
        # The user of a tree that brokers share; None for the user in KAFKA_OPTS.
        self._login: Login | None = None

    @property
    def _connect_timeout_ms(self) -> int:
        return int(self._options["zookeeper.connection.timeout.ms"] or self._timeout_ms)

    @property
    def _timeout_ms(self) -> int:
        return self._options.integer("zookeeper.session.timeout.ms")

    async def open(self, net: Net, rng: Rng) -> Coordination:
        """Open or find the tree and start the first session.

        Raises ConfigError or StorageError with a message for the operator.
        """
        if isinstance(self._tree, EmbeddedTree):
            self.tasks.append(self._tree.tasks)
        if self._tree is None:
            self._servers = _servers(self._options)
        _check_acls(self._options, self._servers)
        if self._tree is None and not self._servers:
            await self._open_on_this_machine(net, rng)
        try:
            return await self._start_session(self._connect_timeout_ms / 1000)
        except EnsembleUnreachable as error:
            option = "coordination.listener" if self._standby else "zookeeper.connect"
            raise ConfigError(f"{option}={self._servers}: {error}.") from error

    async def session(self) -> Coordination:
        """Start another session; ConnectionSuspended if the ensemble does not respond."""
        try:
            return await self._start_session()
        except EnsembleUnreachable as error:
            raise ConnectionSuspended(self._servers) from error

    async def close(self) -> None:
        """Close the tree, if it is this broker's own, after the sessions."""
        if self._standby is not None:
            await self._standby.stop()
        if self._own_tree is not None:
            await self._own_tree.close()

    @property
    def has_own_tree(self) -> bool:
        """True if this broker holds the tree, or serves it to others."""
        return self._own_tree is not None or (
            self._standby is not None and self._standby.is_serving
        )

    def tree_size(self) -> TreeSize | None:
        """Return the size of the tree if this process holds it."""
        if self._standby is not None:
            return self._standby.tree_size()
        return self._tree.size() if isinstance(self._tree, EmbeddedTree) else None

    async def _open_on_this_machine(self, net: Net, rng: Rng) -> None:
        address = parse_address(self._options.text("coordination.listener"))
        if address is None:
            refuse_separate_cluster(self._options)
        directory = tree_directory(self._options, self._files)
        if address is None:
            self._own_tree = self._tree = EmbeddedTree(self._files, self._clock, directory)
            self._own_tree.on_failure = self._failed
            self.tasks.append(self._own_tree.tasks)
            return
        host, port = address
        own = tls.options_of(self._options)
        self._standby = standby.StandbyServer(
            directory,
            host,
            port,
            files=self._files,
            clock=self._clock,
            tls=tls.server_tls_of(own, host, self._files, self._clock),
        )
        self._standby.on_failure = self._failed
        self.tasks += self._standby.tasks
        await self._standby.start(net, rng)
        self._login = await tree_login.wait_for(
            self._files, self._clock, directory, self._connect_timeout_ms
        )
        self._servers = f"{reached(host)}:{port}"

    async def _start_session(self, patience_s: float = 0.0) -> Coordination:
        return MeasuredSession(await self._new_session(), self._clock, self.probe, patience_s)

    async def _new_session(self) -> Coordination:
        if self._tree is not None:
            return self._tree.session(self._timeout_ms)
        return await live.LiveSession.begin(
            self._servers,
            timeout_ms=self._timeout_ms,
            connect_timeout_ms=self._connect_timeout_ms,
            acl_of=secured_znodes.acl_of(self._options),
            tls_options=tls.options_of(self._options),
            login=self._login,
        )

    def _failed(self, error: StorageError) -> None:
        self.on_failure(error)


def _servers(options: Snapshot) -> str:
    servers = options.text("zookeeper.connect")
    if not servers:
        return ""
    if options.text("coordination.listener") or options["coordination.dir"]:
        raise ConfigError(
            "zookeeper.connect and coordination.* exclude each other: the cluster's metadata is "
            "either in a ZooKeeper ensemble or in a directory of this machine. Remove one of them."
        )
    return servers


def _check_acls(options: Snapshot, servers: str) -> None:
    """Raise ConfigError if the nodes are to have access control lists and cannot have them."""
    if not options.boolean("zookeeper.set.acl"):
        return
    if not servers:
        raise ConfigError(
            "zookeeper.set.acl=true needs a ZooKeeper: a tree that brokers keep themselves has no "
            "access control lists. Remove the option, or set zookeeper.connect."
        )
    if not tls.has_user(tls.options_of(options)):
        raise ConfigError(
            "zookeeper.set.acl=true needs a user of ZooKeeper, and none is configured: set "
            "KAFKA_OPTS=-Djava.security.auth.login.config=FILE, a JAAS file with the section Client."
        )

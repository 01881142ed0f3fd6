"""Several brokers in one process: one event loop, one tree, one log directory for each.

For development and tests on one machine. If one broker stops because of its disk, the others
continue; if the tree can no longer be written, all stop, as a broker with its own tree does.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from ottla.base.clock import Clock, RealClock
from ottla.base.errors import ConfigError, OttlaError, StorageError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.options import option_tables
from ottla.cluster.options.metrics_options import parse_address
from ottla.cluster.zk import tls, tree_login
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.listener import RealNet
from ottla.server.loop_lag import LoopWatch
from ottla.server.node import Node

_log = logging.getLogger(__name__)


class LocalCluster:
    """Brokers with these settings over the tree in `directory`; `start` once, `stop` once.

    The tree is served at `coordination.listener` of the first broker if that is set, so that
    ZooKeeper's tools can show it.
    """

    def __init__(
        self,
        settings: Sequence[Mapping[str, str]],
        directory: str | None,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.nodes: list[Node] = []
        # Why the whole cluster stopped by itself; `on_failure` is called then.
        self.failure: OttlaError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._settings = settings
        self._directory = directory
        self._files = files or RealFileSystem()
        self._clock = clock or RealClock()
        self._tree: EmbeddedTree | None = None
        self._server: TreeServer | None = None
        self._stopping: asyncio.Future[None] | None = None

    @property
    def loop_watches(self) -> list[LoopWatch]:
        """The watches that measure how long each broker's event loop is blocked."""
        return [watch for node in self.nodes for watch in node.loop_watches]

    async def start(self) -> None:
        """Start all brokers at once; returns when all serve clients.

        Raises the error of the first that cannot start; the others are stopped again.
        """
        address = parse_address(self._settings[0].get("coordination.listener", ""))
        tree = EmbeddedTree(
            self._files, self._clock, self._directory, is_shared=address is not None
        )
        self._tree = tree
        tree.on_failure = self._tree_failed
        try:
            if address is not None:
                await self._serve_tree(tree, *address)
            self.nodes = [
                Node(settings, clock=self._clock, files=self._files, tree=tree)
                for settings in self._settings
            ]
            starts = await asyncio.gather(
                *(node.start() for node in self.nodes), return_exceptions=True
            )
            for error in starts:
                if isinstance(error, BaseException):
                    raise error
        except BaseException:
            await self.stop()
            raise
        for node in self.nodes:
            node.on_failure = self._node_failed

    async def _serve_tree(self, tree: EmbeddedTree, host: str, port: int) -> None:
        if self._directory is None:
            raise ConfigError(
                "coordination.listener needs a directory for the login of its clients"
            )
        options = option_tables.parse_broker_settings(self._settings[0]).snapshot
        encryption = tls.server_tls_of(tls.options_of(options), host, self._files, self._clock)
        rng = SystemRng()
        login = tree_login.ensure(self._files, self._directory, rng)
        self._server = TreeServer(tree, rng, login)
        try:
            await self._server.open(RealNet(), host, port, encryption)
        except OSError as error:
            raise ConfigError(
                f"coordination.listener: cannot listen on {host}:{port}: {error.strerror or error}. "
                f"Stop the program that uses the address, or choose another one."
            ) from error

    async def stop(self) -> None:
        """Stop all brokers, then the tree. Idempotent, also when called concurrently."""
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await asyncio.gather(
            *(node.stop(with_cluster=True) for node in self.nodes), return_exceptions=True
        )
        if self._server is not None:
            await self._server.close()
        if self._tree is not None:
            await self._tree.close()

    def hurry(self) -> None:
        """Stop waiting for clients during the shutdown."""
        for node in self.nodes:
            node.hurry()

    def _tree_failed(self, error: StorageError) -> None:
        _log.critical("cluster stops error=%s", error)
        self.failure = error
        self.on_failure()

    def _node_failed(self) -> None:
        failures = [node.failure for node in self.nodes]
        if all(failures):
            self.failure = failures[0]
            self.on_failure()

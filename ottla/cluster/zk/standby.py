"""One tree for the processes of one machine: exactly one serves it, and the others stand by.

The process that holds the lock of the directory opens the tree and serves it at an address; every
process, that one included, is a client of the address, and logs in (`tree_login`). If it ends, in
whatever way, the kernel releases the lock, and another process replays the journal and serves at
the same address. Sessions survive: their clients reconnect within the session timeout. A process
that is suspended keeps the lock, so there are never two trees. docs/decisions/0021 has the reasons.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError, OttlaError, OutOfDescriptorsError, StorageError
from ottla.base.files import FileSystem
from ottla.base.platform.descriptors import is_exhausted
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.zk import tree_login
from ottla.cluster.zk.embedded import EmbeddedTree, TreeSize
from ottla.cluster.zk.journal import DirectoryInUse
from ottla.cluster.zk.tls import ServerTls
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.port import Net
from ottla.security.zookeeper.login import Login

_log = logging.getLogger(__name__)

# Seconds between two attempts to take the lock; a failed one costs 20 µs.
ATTEMPT_SECONDS = 0.1


class StandbyServer:
    """Serves the tree of `directory` at `host` and `port` as soon as no other process does.

    With `tls`, connections are encrypted. `on_failure` is called if the tree cannot be opened or
    written any more.
    """

    def __init__(
        self,
        directory: str,
        host: str,
        port: int,
        *,
        files: FileSystem,
        clock: Clock,
        tls: ServerTls | None = None,
    ) -> None:
        self.on_failure: Callable[[StorageError], None] = lambda error: None
        self._directory = directory
        self._host, self._port = host, port
        self._files = files
        self._clock = clock
        self._tls = tls
        # The tasks of this object and the tasks of its tree, which end later.
        self._tasks, self._tree_tasks = Tasks(clock=clock), Tasks(clock=clock)
        self._is_short_of_descriptors = False
        self._tree: EmbeddedTree | None = None
        self._server: TreeServer | None = None

    @property
    def tasks(self) -> list[Tasks]:
        """The background tasks of the standby and of the tree, for monitoring."""
        return [self._tasks, self._tree_tasks]

    @property
    def is_serving(self) -> bool:
        """Return True if this process serves the tree."""
        return self._server is not None

    def tree_size(self) -> TreeSize | None:
        """Return the size of the tree that this process serves; None if another one does."""
        return None if self._server is None or self._tree is None else self._tree.size()

    async def start(self, net: Net, rng: Rng) -> None:
        """Serve, or stand by if another process serves.

        Raises StorageError if the tree cannot be opened, ConfigError if the address cannot be used.
        """
        if not await self._attempt(net, rng):
            self._tasks.supervise(partial(self._stand_by, net, rng), "coordination standby")

    async def stop(self) -> None:
        """Hand over to another process: it can serve as soon as this returns."""
        await self._tasks.close()
        server, self._server = self._server, None
        if server is not None:
            await server.close()
        if self._tree is not None:
            await self._tree.close()

    async def _stand_by(self, net: Net, rng: Rng) -> None:
        while True:
            await self._clock.sleep(ATTEMPT_SECONDS)
            try:
                if await self._attempt(net, rng):
                    _log.warning("coordination taken over directory=%s", self._directory)
                    return
                self._is_short_of_descriptors = False
            except OutOfDescriptorsError as error:
                if not self._is_short_of_descriptors:
                    self._is_short_of_descriptors = True
                    _log.error("coordination standby is retried error=%s", error)
            except (StorageError, ConfigError) as error:
                self.on_failure(
                    error
                    if isinstance(error, StorageError)
                    else StorageError(self._directory, str(error))
                )
                return

    async def _attempt(self, net: Net, rng: Rng) -> bool:
        """Take the lock, open the tree and serve it; return False if another process has the lock."""
        opening = asyncio.ensure_future(
            self._files.in_background(
                partial(
                    EmbeddedTree,
                    self._files,
                    self._clock,
                    self._directory,
                    is_shared=True,
                    tasks=self._tree_tasks,
                )
            )
        )
        try:
            tree = await asyncio.shield(opening)
        except DirectoryInUse:
            return False
        except asyncio.CancelledError:
            await asyncio.wait([opening])
            if opening.exception() is None:
                await opening.result().close()
            raise
        tree.on_failure = self._fail
        async with AsyncExitStack() as undo:
            undo.push_async_callback(tree.close)
            server = TreeServer(tree, rng, await self._login(rng))
            try:
                await server.open(net, self._host, self._port, self._tls)
            except OSError as error:
                raise self._cannot_listen(error) from error
            undo.pop_all()
        self._tree, self._server = tree, server
        return True

    async def _login(self, rng: Rng) -> Login:
        """Return the login of the tree, which the first process that serves it creates."""
        ensure = partial(tree_login.ensure, self._files, self._directory, rng)
        try:
            return await self._files.in_background(ensure)
        except OSError as error:
            kind = OutOfDescriptorsError if is_exhausted(error) else StorageError
            path = tree_login.path_of(self._directory)
            raise kind(self._directory, f"{path} cannot be read or written: {error}") from error

    def _cannot_listen(self, error: OSError) -> OttlaError:
        problem = f"cannot listen on {self._host}:{self._port}: {error.strerror or error}"
        if is_exhausted(error):
            return OutOfDescriptorsError(self._directory, problem)
        return ConfigError(
            f"coordination.listener: {problem}. Stop the program that uses the address, or choose "
            f"another one for all brokers of this machine."
        )

    def _fail(self, error: StorageError) -> None:
        self.on_failure(error)

"""The tree of a cluster of several brokers in a test, on a thread of its own.

Every broker has its own event loop, so that one can be paused or slow alone. Its sessions with the
tree cross the threads; the test suspends, resumes and expires them.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ottla.base.clock import RealClock
from ottla.base.files import FileSystem
from ottla.cluster.zk.embedded import SESSION_TIMEOUT_MS, EmbeddedSession, EmbeddedTree
from ottla.cluster.zk.port import ANY_VERSION, Operation, Result, SessionState, Stat, Watch

T = TypeVar("T")


class TreeThread:
    """A tree in `directory`, from `start` to `stop`."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.loop = asyncio.new_event_loop()
        self.tree: EmbeddedTree
        self._thread = threading.Thread(target=self._run, name="ottla-coordination", daemon=True)

    def start(self) -> None:
        """Open the tree; raises StorageError."""
        self.tree = EmbeddedTree(self._files, RealClock(), self._directory)
        self._thread.start()

    def stop(self) -> None:
        """Close the tree."""
        self.wait(self.tree.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the tree's loop, from any other thread, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def call(self, action: Callable[[], None]) -> None:
        """Call a function on the tree's loop and return when it has returned."""

        async def run() -> None:
            action()

        self.wait(run())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


class BrokerSessions:
    """The tree as one broker sees it (a `SharedTree`): starts sessions for the running loop."""

    def __init__(self, thread: TreeThread) -> None:
        self._thread = thread
        self._current: EmbeddedSession | None = None
        self._is_suspended = False

    def session(self, timeout_ms: int = SESSION_TIMEOUT_MS) -> "ThreadedSession":
        """Start a session."""

        async def begin() -> EmbeddedSession:
            self._current = self._thread.tree.session(timeout_ms)
            if self._is_suspended:
                self._current.suspend()
            return self._current

        return ThreadedSession(
            self._thread.wait(begin()), self._thread.loop, asyncio.get_running_loop()
        )

    def suspend(self) -> None:
        """Disconnect the broker's session, and those that it starts; it is lost after its timeout."""
        self._is_suspended = True
        self._on_current(EmbeddedSession.suspend)

    def resume(self) -> None:
        """Reconnect the session, unless its timeout has expired."""
        self._is_suspended = False
        self._on_current(EmbeddedSession.resume)

    def expire(self) -> None:
        """End the session, as the tree does with a silent one."""
        self._on_current(EmbeddedSession.expire)

    def _on_current(self, action: Callable[[EmbeddedSession], None]) -> None:
        if self._current is not None:
            self._thread.call(partial(action, self._current))


@dataclass(frozen=True, slots=True)
class _Forward:
    """Calls a broker's function on the broker's loop. Equal if the function is the same."""

    loop: asyncio.AbstractEventLoop
    function: Callable[..., None]

    def __call__(self, value: Any) -> None:
        # A broker that was killed has no loop any more.
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.function, value)


class ThreadedSession:
    """A session on the tree's loop, used from the broker's loop (implements Coordination)."""

    def __init__(
        self,
        session: EmbeddedSession,
        tree_loop: asyncio.AbstractEventLoop,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._session = session
        self._tree_loop = tree_loop
        self._loop = loop

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        return self._session.session_id

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        return await self._ask(self._session.get(path, self._forward(watch)))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        return await self._ask(self._session.exists(path, self._forward(watch)))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        return await self._ask(self._session.children(path, self._forward(watch)))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        return await self._ask(
            self._session.create(path, data, ephemeral=ephemeral, sequential=sequential)
        )

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        await self._ask(self._session.ensure(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        return await self._ask(self._session.set(path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self._ask(self._session.delete(path, version))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        return await self._ask(self._session.multi(operations))

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        self._session.on_session(_Forward(self._loop, listener))

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        await self._ask(self._session.close())

    def _forward(self, watch: Watch | None) -> Watch | None:
        return None if watch is None else _Forward(self._loop, watch)

    async def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._tree_loop))

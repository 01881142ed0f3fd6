"""The coordination ensemble of a simulated cluster: one tree, reached by every machine over the
network.

The ensemble is the host `zk` of the network, and is never down itself. A session expires if its
machine is cut off, paused or dead for the session timeout; its client notices the silence after two
thirds of that time (SUSPENDED), and learns of the loss when it reaches the ensemble again, like a
ZooKeeper client. Requests, responses and notifications of one session arrive in order. Calls into
a broker run in the broker's own process, so that a dead or paused process receives none.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ottla.base.clock import Clock
from ottla.base.tasks import Tasks
from ottla.cluster.zk.embedded import SESSION_TIMEOUT_MS, EmbeddedSession, EmbeddedTree
from ottla.cluster.zk.port import (
    ANY_VERSION,
    Check,
    ConnectionSuspended,
    CoordinationError,
    Create,
    Delete,
    Operation,
    Result,
    SessionLost,
    SessionState,
    SetData,
    Stat,
    Watch,
)
from ottla.testing.sim.disk import Disk
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.loop import Process, current_process
from ottla.testing.sim.net import SimNetwork

T = TypeVar("T")

HOST = "zk"
# A later message arrives at least this many seconds after an earlier one.
_ORDER_SECONDS = 1e-6


class SimCoordination:
    """The ensemble; all brokers share its `tree`."""

    def __init__(self, network: SimNetwork, clock: Clock) -> None:
        self.network = network
        self.clock = clock
        self.tree = EmbeddedTree(SimFileSystem(Disk(), clock=clock), clock)
        # The nodes that all sessions have read and written since the beginning.
        self.reads_count = self.writes_count = 0
        self._sessions: list[SimSession] = []
        self._outside = contextvars.copy_context()

    def access(self, host: str) -> "HostAccess":
        """Return the access of one machine."""
        return HostAccess(self, host)

    def start(self, host: str, timeout_ms: int) -> "SimSession":
        """Start a session of a machine's running process."""
        session = SimSession(self, host, timeout_ms)
        self._sessions.append(session)
        session.check_reachability()
        return session

    def changed(self) -> None:
        """Check which sessions reach the ensemble, after a change of links or processes."""
        for session in list(self._sessions):
            session.check_reachability()

    def expire(self, host: str) -> int:
        """Expire the sessions of a machine as the ensemble may do at any time; return their number."""
        sessions = [session for session in self._sessions if session.host == host]
        for session in sessions:
            session.expire()
        return len(sessions)

    def forget(self, session: "SimSession") -> None:
        """Remove a session that has ended for the ensemble and its client."""
        if session in self._sessions:
            self._sessions.remove(session)

    def later(self, at: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Run an action of the ensemble, which belongs to no broker's process."""
        loop = asyncio.get_running_loop()
        return loop.call_at(at, action, context=self._outside.copy())


class HostAccess:
    """The tree as one machine reaches it."""

    def __init__(self, coordination: SimCoordination, host: str) -> None:
        self._coordination = coordination
        self._host = host
        self.tasks = Tasks(clock=coordination.clock)

    def session(self, timeout_ms: int = SESSION_TIMEOUT_MS) -> "SimSession":
        """Start a session."""
        return self._coordination.start(self._host, timeout_ms)


@dataclass(frozen=True)
class _Notification:
    """A watch at the ensemble; equal ones fire once."""

    session: "SimSession"
    watch: Watch

    def __call__(self, path: str) -> None:
        self.session.notify(self.watch, path)


class SimSession:
    """One session (implements Coordination); `host` is its machine."""

    def __init__(self, coordination: SimCoordination, host: str, timeout_ms: int) -> None:
        self.host = host
        self._coordination = coordination
        self._network = coordination.network
        self._process: Process | None = current_process()
        self._context = contextvars.copy_context()
        self._timeout_seconds = timeout_ms / 1000
        self._inner: EmbeddedSession = coordination.tree.session(timeout_ms)
        self._state = SessionState.CONNECTED
        self._listeners: list[Callable[[SessionState], None]] = []
        self._pending: dict[asyncio.Future[Any], str] = {}
        # Messages on a cut link, which are sent again when it heals.
        self._unperformed: list[Callable[[], None]] = []
        self._undelivered: list[Callable[[], None]] = []
        self._is_reachable = True
        self._timers: list[asyncio.TimerHandle] = []
        self._last_sent = self._last_received = 0.0
        if self._process is not None:
            self._process.on_kill(self._died)

    # -- the port ---------------------------------------------------------------------------------

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        return self._inner.session_id

    @property
    def state(self) -> SessionState:
        """The state of the session as its client knows it."""
        return self._state

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        self._coordination.reads_count += 1
        return await self._call(path, lambda: self._inner.get(path, self._watch(watch)))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        self._coordination.reads_count += 1
        return await self._call(path, lambda: self._inner.exists(path, self._watch(watch)))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        self._coordination.reads_count += 1
        return await self._call(path, lambda: self._inner.children(path, self._watch(watch)))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        self._coordination.writes_count += 1
        await self._call(path, lambda: self._inner.ensure(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        (stat,) = await self.multi([SetData(path, data, version)])
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        writes_count = sum(not isinstance(operation, Check) for operation in operations)
        self._coordination.writes_count += writes_count
        path = operations[0].path if operations else "/"
        return await self._call(path, lambda: self._inner.multi(operations))

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed if the ensemble can be reached."""
        self._listeners.clear()
        if self._state is SessionState.CONNECTED:
            try:
                await self._call("/", self._inner.close)
            except (ConnectionSuspended, SessionLost):
                return
        self._state = SessionState.LOST

    # -- requests ---------------------------------------------------------------------------------

    def _watch(self, watch: Watch | None) -> Watch | None:
        return None if watch is None else _Notification(self, watch)

    async def _call(self, path: str, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._refuse_unless_connected(path)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending[future] = path
        self._last_sent = self._next_arrival(self._last_sent)
        self._coordination.later(self._last_sent, partial(self._perform, operation, future))
        try:
            return await future
        finally:
            self._pending.pop(future, None)

    def _perform(
        self, operation: Callable[[], Coroutine[Any, Any, T]], future: "asyncio.Future[T]"
    ) -> None:
        """Perform an operation at the ensemble; without a journal it never waits."""
        if self._network.is_cut(self.host, HOST):
            self._unperformed.append(partial(self._perform, operation, future))
            return
        result: Any = None
        error: CoordinationError | None = None
        try:
            operation().send(None)
        except StopIteration as done:
            result = done.value
        except CoordinationError as refusal:
            error = refusal
        self._to_client(partial(_complete, future, result, error))

    def _to_client(self, action: Callable[[], None]) -> None:
        if self._network.is_cut(HOST, self.host):
            self._undelivered.append(action)
            return
        self._last_received = self._next_arrival(self._last_received)
        asyncio.get_running_loop().call_at(
            self._last_received, action, context=self._context.copy()
        )

    def _next_arrival(self, last: float) -> float:
        now = asyncio.get_running_loop().time()
        return max(now + self._network.delay(), last + _ORDER_SECONDS)

    def notify(self, watch: Watch, path: str) -> None:
        """Send a notification; one that cannot be sent is delivered after the reconnection."""
        self._to_client(partial(watch, path))

    def _refuse_unless_connected(self, path: str) -> None:
        if self._process is not None and not self._process.is_alive:
            # A `finally` block of a killed process: it would close the session, which must expire.
            raise SessionLost(path)
        if self._state is SessionState.SUSPENDED:
            raise ConnectionSuspended(path)
        if self._state is SessionState.LOST:
            raise SessionLost(path)

    # -- reachability -----------------------------------------------------------------------------

    def _died(self) -> None:
        self._listeners.clear()
        self._pending.clear()
        self._stop_timers()
        self._is_reachable = False
        if self._inner.state is not SessionState.LOST:
            self._after(self._timeout_seconds, self._expire_silent)

    def check_reachability(self) -> None:
        """Start or stop the timers of both sides if the session was cut off or is reached again."""
        process = self._process
        if process is not None and not process.is_alive:
            return
        is_paused = process is not None and process.is_paused
        is_cut = self._network.is_cut(self.host, HOST) or self._network.is_cut(HOST, self.host)
        is_reachable = not (is_paused or is_cut)
        if is_reachable == self._is_reachable:
            return
        self._is_reachable = is_reachable
        self._stop_timers()
        if is_reachable:
            self._reconnect()
            return
        self._after(self._timeout_seconds, self._expire_silent)
        if is_cut:
            silence = partial(self._in_client, self._suspended)
            self._after(self._timeout_seconds * 2 / 3, silence)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        at = asyncio.get_running_loop().time() + seconds
        self._timers.append(self._coordination.later(at, action))

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _in_client(self, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(action, context=self._context.copy())

    def _expire_silent(self) -> None:
        """Expire the session of a client that cannot be reached, which does not notice."""
        self._inner.expire()
        self._unperformed.clear()
        self._undelivered.clear()
        if self._process is not None and not self._process.is_alive:
            self._coordination.forget(self)

    def expire(self) -> None:
        """Expire the session at the ensemble; the client learns of it if it can be reached."""
        self._expire_silent()
        if self._is_reachable:
            self._to_client(self._lost)

    def _reconnect(self) -> None:
        if self._inner.state is SessionState.LOST:
            self._to_client(self._lost)
            return
        unperformed, self._unperformed = self._unperformed, []
        undelivered, self._undelivered = self._undelivered, []
        if self._state is SessionState.SUSPENDED:
            # A new connection: requests of the former one are lost.
            self._to_client(self._connected)
            unperformed.clear()
        for deliver in undelivered:
            self._to_client(deliver)
        for perform in unperformed:
            perform()

    def _suspended(self) -> None:
        # A paused process may take this step after the ensemble has been reached again.
        if self._state is SessionState.CONNECTED and not self._is_reachable:
            self._enter(SessionState.SUSPENDED)
            self._fail_pending(ConnectionSuspended)

    def _connected(self) -> None:
        if self._state is SessionState.SUSPENDED:
            self._enter(SessionState.CONNECTED)

    def _lost(self) -> None:
        self._coordination.forget(self)
        if self._state is not SessionState.LOST:
            self._enter(SessionState.LOST)
            self._fail_pending(SessionLost)

    def _fail_pending(self, error: type[CoordinationError]) -> None:
        pending, self._pending = self._pending, {}
        for future, path in pending.items():
            if not future.done():
                future.set_exception(error(path))

    def _enter(self, state: SessionState) -> None:
        self._state = state
        for listener in list(self._listeners):
            asyncio.get_running_loop().call_soon(listener, state)


def _complete(
    future: "asyncio.Future[Any]", result: object, error: CoordinationError | None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

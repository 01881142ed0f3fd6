"""A session with the tree whose operations are timed and whose changes of state are counted.

Follows kafka.zookeeper.ZooKeeperClient: the latency of every request, and the states of the session
that its listeners see. A broker that starts waits for its connection, as there: an operation that
changes nothing, or that can be repeated, does not fail with the first session while this is young.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.cluster.zk.port import (
    ANY_VERSION,
    ConnectionSuspended,
    Coordination,
    Operation,
    Result,
    SessionState,
    Stat,
    Watch,
)
from ottla.metrics.histogram import Histogram

T = TypeVar("T")
_PAUSE_SECONDS = 0.05


class SessionProbe:
    """The figures of all sessions of a broker; times in microseconds."""

    def __init__(self) -> None:
        self.latency = Histogram()
        self.state = SessionState.LOST
        # How often the sessions were connected, disconnected, and lost.
        self.connected_count = self.suspended_count = self.lost_count = 0

    def begun(self) -> None:
        """Record a session that has just started."""
        self.changed(SessionState.CONNECTED)

    def changed(self, state: SessionState) -> None:
        """Record the new state of the current session."""
        self.state = state
        self.connected_count += state is SessionState.CONNECTED
        self.suspended_count += state is SessionState.SUSPENDED
        self.lost_count += state is SessionState.LOST


class MeasuredSession:
    """A session (implements Coordination) that reports to a probe.

    In its first `patience_s` seconds, reads and `ensure` wait for a suspended connection.
    """

    def __init__(
        self, session: Coordination, clock: Clock, probe: SessionProbe, patience_s: float = 0.0
    ) -> None:
        self._session = session
        self._clock = clock
        self._patient_until = clock.monotonic() + patience_s
        self._probe = probe
        probe.begun()
        session.on_session(probe.changed)

    async def _timed(self, work: Awaitable[T]) -> T:
        started = self._clock.monotonic()
        try:
            return await work
        finally:
            self._probe.latency.observe(int((self._clock.monotonic() - started) * 1_000_000))

    async def _repeated(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await self._timed(work())
            except ConnectionSuspended:
                if self._clock.monotonic() >= self._patient_until:
                    raise
            await self._clock.sleep(_PAUSE_SECONDS)

    @property
    def session_id(self) -> int:
        """Identity of the session; owner of its ephemeral nodes."""
        return self._session.session_id

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return data and Stat; raise NoNode, without setting a watch, if the node does not exist."""
        return await self._repeated(lambda: self._session.get(path, watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the Stat or None; the watch fires on creation, change and deletion."""
        return await self._repeated(lambda: self._session.exists(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of the children, sorted; the watch fires when one comes or goes."""
        return await self._repeated(lambda: self._session.children(path, watch))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (parent)."""
        return await self._timed(
            self._session.create(path, data, ephemeral=ephemeral, sequential=sequential)
        )

    async def ensure(self, path: str) -> None:
        """Create the node and its parents, empty, if they do not exist."""
        await self._repeated(lambda: self._session.ensure(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data; NoNode, BadVersion."""
        return await self._timed(self._session.set(path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self._timed(self._session.delete(path, version))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none; raise the error of the first that fails."""
        return await self._timed(self._session.multi(operations))

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on every change of the session's state."""
        self._session.on_session(listener)

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        await self._session.close()

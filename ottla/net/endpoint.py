"""One listening address and its connections: admission, sweeping, draining.

Two background tasks serve all connections, so a connection needs no timer of its own.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.base.clock import RealClock
from ottla.base.loading import deferred_module
from ottla.base.logs import provoked_logger
from ottla.base.tasks import Tasks
from ottla.net import port
from ottla.net.admission.newcomers import Bounds, Newcomers
from ottla.net.admission.origins import origin_of
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection, FrameHandler
from ottla.net.descriptors import DescriptorLimit
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receiving import nothing_received
from ottla.net.unsent import UnsentBudget

if TYPE_CHECKING:
    from ottla.net.admission import handshakes
else:
    # Only listeners with TLS need it.
    handshakes = deferred_module("ottla.net.admission.handshakes")

_log = provoked_logger(__name__)

_SWEEP_SECONDS = 5.0
_RECLAIM_SECONDS = 1.0
# Seconds without progress after which an unfinished request is closed if others wait for memory.
_SILENT_SECONDS = 2.0
# Seconds without a single byte after which the same is done to a connection that has completed a
# request before: networks have interruptions of half this time.
_ESTABLISHED_SILENT_SECONDS = 30.0
# It is not done if the connection holds less than this part of the memory.
_MATERIAL_SHARE = 1 / 64


class Rooms:
    """The strangers of all endpoints of a broker: in a TLS handshake, and before they are known."""

    def __init__(self, bounds: Bounds) -> None:
        self.handshakes: Newcomers[port.Handshake] = Newcomers(bounds)
        self.connections: Newcomers[Connection] = Newcomers(bounds)
        # Connections that were closed because their client was not known in time.
        self.timed_out_count = 0

    def bound(self, bounds: Bounds) -> None:
        """Apply changed bounds to newcomers."""
        self.handshakes.bounds = self.connections.bounds = bounds


class Endpoint:
    """Owns every connection it accepted, on one event loop, from `open` to `close`.

    `name` is the listener's, as in `listeners`. `tasks` are the broker's; they report the
    failures of the endpoint's own. With `tls`, connections are encrypted.
    """

    def __init__(
        self,
        name: str,
        *,
        limits: Limits,
        budget: ReceiveBudget,
        unsent: UnsentBudget,
        buffers: ReceiveBuffers,
        tasks: Tasks | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = None if tls is None else port.ListenerTls(tls, self)
        self.is_encrypted = tls is not None
        # True if clients are not known before the handler passes their connections to another one.
        self.is_gated = False
        self.rooms = Rooms(Bounds())
        # None without TLS.
        self.handshake_order: handshakes.HandshakeOrder[Any] | None = None
        if tls is not None:
            self.handshake_order = handshakes.HandshakeOrder(handshakes.Pace())
        self.name = name
        self.limits = limits
        self.budget = budget
        self.unsent = unsent
        self.buffers = buffers
        self.nothing_received = nothing_received(buffers, budget)
        # None until `serve`.
        self.handler: FrameHandler | None = None
        # Counts a connection from an address; returns the seconds to hold it before it is closed
        # (KIP-612).
        self.throttle_ms: Callable[[str], int] | None = None
        # Reports the address and OpenSSL's reason of a TLS handshake that has failed.
        self.on_failed_handshake: Callable[[str, str], None] | None = None
        # Called after each TLS handshake.
        self.on_handshake: Callable[[], None] | None = None
        self._descriptors: DescriptorLimit | None = None
        self.host = ""
        self.port = 0
        # The number of connections since the start.
        self.accepted_count = 0
        # In order of arrival: the order of a set differs from process to process.
        self._connections: dict[Connection, None] = {}
        # Connections by address, with TLS handshakes.
        self._by_host: Counter[str] = Counter()
        # Handshakes of TLS, which are not connections yet.
        self._handshakes_count = 0
        # Handshakes by address that are connections, and of which `end` is not called yet.
        self._established: Counter[str] = Counter()
        self._unsent_bytes: dict[Connection, int] = {}
        self._net: port.Net | None = None
        self._listener: port.Listener | None = None
        self._clock = RealClock()
        self._tasks = tasks or Tasks()
        self._upkeep: list[asyncio.Task[None]] = []
        self._all_gone: asyncio.Future[None] | None = None
        self._is_hurried = False

    async def open(self, net: port.Net, host: str, port_number: int) -> None:
        """Accept connections, which wait until `serve`.

        Raises OSError if the address is in use or does not belong to this machine.
        """
        self._net = net
        buffers = self.limits.socket_buffers
        self._listener = await net.listen(host, port_number, self._accept, buffers, self._tls)
        self.host, self.port = self._listener.host, self._listener.port
        supervise = self._tasks.supervise
        self._upkeep = [
            supervise(self._close_slow_connections, "timeouts of connections", self.name),
            supervise(self._reclaim_regularly, "memory and descriptors", self.name),
        ]

    def renew_tls(self, context: ssl.SSLContext) -> None:
        """Use another context for connections from now on."""
        assert self._tls is not None, "the endpoint has no TLS"
        self._tls.context = context

    def serve(self, handler: FrameHandler) -> None:
        """Start to handle requests, also on the connections that have been waiting."""
        self.handler = handler
        for connection in self._connections:
            connection.serve(handler)

    @property
    def handshakes_count(self) -> int:
        """The number of TLS handshakes that are not complete."""
        return self._handshakes_count

    @property
    def connections_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def active_since(self, moment: float) -> list[Connection]:
        """Return the connections that received bytes since `moment`, a time of the event loop."""
        return [connection for connection in self._connections if connection.active_at >= moment]

    def limit_descriptors(self, limit: DescriptorLimit) -> None:
        """Refuse connections that would use descriptors needed for files."""
        self._descriptors = limit
        limit.watch(self._connections)

    def count_hosts_in(self, by_host: Counter[str]) -> None:
        """Share the count of connections by address: max.connections.per.ip is for a broker."""
        self._by_host = by_host

    def _accept(self) -> Connection:
        return Connection(self)

    def begin(self, handshake: port.Handshake, host: str) -> port.Handshake | None:
        """Count a TLS handshake unless max.connections(.per.ip) are open or in a handshake.

        Returns the handshake to close: this one, another stranger's, or None.
        """
        opened = len(self._connections) + self._handshakes_count
        if opened >= self.limits.connections_max or self._by_host[
            host
        ] >= self.limits.connections_from(host):
            return handshake
        loser = self.rooms.handshakes.arrive(handshake, origin_of(host))
        if loser is not handshake:
            self._by_host[host] += 1
            self._handshakes_count += 1
        return loser

    def end(self, handshake: port.Handshake, host: str) -> None:
        """Remove a handshake: it has failed, or is a connection now."""
        self.rooms.handshakes.leave(handshake, origin_of(host))
        if self._established[host]:
            _decrease(self._established, host)
            return
        self._handshakes_count -= 1
        _decrease(self._by_host, host)

    def failed(self, host: str, reason: str) -> None:
        """Note that a TLS handshake has failed."""
        if self.on_failed_handshake is not None:
            self.on_failed_handshake(host, reason)

    def admit(self, connection: Connection) -> bool:
        """Count a new connection unless max.connections(.per.ip) are open."""
        self._connections[connection] = None
        self.accepted_count += 1
        host = connection.peer_address[0]
        if self.is_encrypted:
            # Its handshake has been counted.
            self._handshakes_count -= 1
            self._established[host] += 1
            if self.on_handshake is not None:
                self.on_handshake()
        else:
            self._by_host[host] += 1
        throttle_ms = self.throttle_ms(host) if self.throttle_ms is not None else 0
        if throttle_ms:
            # If it were closed at once, it would reconnect at once.
            seconds = throttle_ms / 1000
            connection.mute(2 * seconds)
            asyncio.get_running_loop().call_later(
                seconds, connection.close, "too many connections per second"
            )
        return (
            len(self._connections) <= self.limits.connections_max
            and self._by_host[host] <= self.limits.connections_from(host)
            and (self._descriptors is None or self._descriptors.admit())
            and self._is_let_in(connection, host)
        )

    def _is_let_in(self, connection: Connection, host: str) -> bool:
        """Return True if a stranger may stay; close another one if that has to leave for it."""
        loser = self.rooms.connections.arrive(connection, origin_of(host))
        if loser is not None and loser is not connection:
            loser.dismiss("displaced by a connection from an address with fewer")
        return loser is not connection

    def forget(self, connection: Connection) -> None:
        """Remove a lost connection from the count."""
        host = connection.peer_address[0]
        self._connections.pop(connection, None)
        self.rooms.connections.leave(connection, origin_of(host))
        _decrease(self._by_host, host)
        self._unsent_bytes.pop(connection, None)
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)

    def file_socket(self, transport: asyncio.BaseTransport) -> port.FileSocket | None:
        """Return the means to send files through a transport; None if it cannot send files."""
        return None if self._net is None else self._net.file_socket(transport)

    async def _close_slow_connections(self) -> None:
        seconds = min(
            _SWEEP_SECONDS,
            self.limits.idle_seconds / 2,
            self.limits.frame_seconds / 2,
            self.limits.authentication_seconds / 2,
        )
        while True:
            await self._clock.sleep(seconds)
            self._sweep()

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            reason = self._reason_to_close(connection, now)
            # A peer that reads nothing would keep a closing connection open for ever.
            if reason and (connection.unsent_bytes or connection.is_stranger):
                connection.dismiss(reason)
            elif reason:
                connection.close(reason)

    async def _reclaim_regularly(self) -> None:
        while True:
            await self._clock.sleep(_RECLAIM_SECONDS)
            if self.budget.has_waiting:
                self._reclaim()
            if self._descriptors is not None:
                self._descriptors.relieve()

    def _reclaim(self) -> None:
        """Close silent unfinished requests, because others wait for memory: the largest first."""
        now = asyncio.get_running_loop().time()
        silent = [
            connection
            for connection in self._connections
            if not connection.is_closed and connection.silent_seconds(now) >= _SILENT_SECONDS
        ]
        freed_bytes = 0
        for connection in self._reclaimable(silent, now):
            freed_bytes += connection.received.memory.held_bytes
            connection.close("request made no progress while others wait for memory")
            if freed_bytes >= self.budget.limit_bytes // 4:
                break
        for connection in silent:
            connection.received.memory.stall()

    def _reclaimable(self, silent: list[Connection], now: float) -> list[Connection]:
        """Return the connections to close: an established one only if there is no other."""
        chosen = [connection for connection in silent if not connection.frames_count]
        if not chosen:
            share_bytes = self.budget.limit_bytes * _MATERIAL_SHARE
            chosen = [
                connection
                for connection in silent
                if connection.received.memory.held_bytes >= share_bytes
                and connection.silent_seconds(now) >= _ESTABLISHED_SILENT_SECONDS
            ]
        return sorted(chosen, key=_held_bytes, reverse=True)

    def _reason_to_close(self, connection: Connection, now: float) -> str:
        limits = self.limits
        if connection.is_closed:
            return ""
        if connection.is_stranger and self._is_overdue(connection, now):
            self.rooms.timed_out_count += 1
            what = "authentication" if self.is_gated else "first request"
            return f"no {what} within the time limit"
        if connection.received.memory.is_waiting:
            return ""
        unsent = connection.undelivered_bytes
        if unsent:
            before = self._unsent_bytes.get(connection, 0)
            self._unsent_bytes[connection] = unsent
            if unsent < before:
                # The peer reads, however slowly.
                connection.active_at = now
        started_at = connection.received.frame_started_at
        if started_at and now - started_at > limits.frame_seconds:
            return "request not completed within the time limit"
        is_owed = connection.is_waiting_for_answer and not unsent
        if not is_owed and now - connection.active_at > limits.idle_seconds:
            return "idle for connections.max.idle.ms"
        return ""

    def _is_overdue(self, connection: Connection, now: float) -> bool:
        """Return True if a client should be known by now; a delay by the broker does not count."""
        if connection.is_muted or connection.is_waiting_for_answer:
            return False
        # Without authentication the first request may be large.
        if connection.received.memory.is_waiting and not self.is_gated:
            return False
        return now - connection.connected_at > self.limits.authentication_seconds

    async def stop_accepting(self) -> None:
        """Accept no new connection; idempotent."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.close()

    def hurry(self) -> None:
        """Make `close` stop waiting for peers, even if it has not begun yet."""
        self._is_hurried = True
        if self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)

    async def close(self, drain_seconds: float) -> None:
        """Stop accepting, send pending responses for up to `drain_seconds`, close every connection."""
        await self.stop_accepting()
        for task in self._upkeep:
            task.cancel()
        self._upkeep.clear()
        for connection in list(self._connections):
            connection.drain()
        await self._wait_until_all_gone(0 if self._is_hurried else drain_seconds)
        remaining = list(self._connections)
        if remaining:
            _log.warning("connections aborted at shutdown count=%d", len(remaining))
        for connection in remaining:
            connection.abort()
        await self._wait_until_all_gone(drain_seconds)

    async def _wait_until_all_gone(self, seconds: float) -> None:
        if not self._connections:
            return
        self._all_gone = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._all_gone
        except TimeoutError:
            return


def _decrease(counts: Counter[str], host: str) -> None:
    counts[host] -= 1
    if not counts[host]:
        del counts[host]


def _held_bytes(connection: Connection) -> int:
    return connection.received.memory.held_bytes

"""The network of a simulation: hosts, links with a delay from the seed, partitions and resets.

`SimNetwork` connects all hosts; `host(name)` returns the Net port of one machine. A partition
delays bytes but does not lose them, because TCP retransmits: they arrive when it heals. Connection
attempts to a host that is cut off time out; a host without a listener on the port refuses them.
"""

import asyncio
import contextvars
import errno
import os
import ssl
from collections.abc import Iterable
from functools import partial

from ottla.base.rng import Rng
from ottla.net.port import SYSTEM_BUFFERS, ListenerTls, ProtocolFactory, SocketBuffers
from ottla.testing.sim.loop import Process, current_process
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.transport import Address, Pipe, SimFileSocket, SimTransport

LOCAL_NAMES = ("", "0.0.0.0", "::", "127.0.0.1", "::1", "localhost")  # noqa: S104
CONNECT_TIMEOUT_SECONDS = 127.0
FIRST_FREE_PORT = 32_768
PIECE_BYTES_MAX = 32 * 1024
# Connections that have ended are removed when there are as many again.
_PRUNED_AT_LEAST = 50


class SimListener:
    """A listening address (implements Listener)."""

    def __init__(self, network: "SimNetwork", address: Address, factory: ProtocolFactory) -> None:
        self._network = network
        self._address = address
        self.factory = factory
        self.process = current_process()
        self.context = contextvars.copy_context()

    @property
    def host(self) -> str:
        """Address that the listener is bound to."""
        return self._address[0]

    @property
    def port(self) -> int:
        """Port that the listener is bound to."""
        return self._address[1]

    async def close(self) -> None:
        """Stop accepting; existing connections are kept."""
        self.vanish()

    def vanish(self) -> None:
        """Stop accepting."""
        if self._network.listeners.get(self._address) is self:
            del self._network.listeners[self._address]


class SimNet:
    """The network as one host sees it (implements Net)."""

    def __init__(self, network: "SimNetwork", name: str) -> None:
        self._network = network
        self.name = name

    def _resolve(self, host: str) -> str:
        return self.name if host in LOCAL_NAMES else host

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
        tls: ListenerTls | None = None,
    ) -> SimListener:
        """Accept connections on a port of this host; raises OSError if it is in use."""
        assert tls is None, "simulated connections have no TLS"
        name = self._resolve(host)
        if name != self.name:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        address = name, port or self._network.free_port()
        if address in self._network.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = SimListener(self._network, address, factory)
        self._network.listeners[address] = listener
        if listener.process is not None:
            listener.process.on_kill(listener.vanish)
        return listener

    async def connect(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect; raises ConnectionRefusedError without a listener, TimeoutError if the host is
        cut off.
        """
        assert tls is None, "simulated connections have no TLS"
        target = self._resolve(host), port
        network = self._network
        loop = asyncio.get_running_loop()
        process = current_process()
        await asyncio.sleep(network.delay())
        waited, pause = 0.0, 1.0
        while network.is_cut(self.name, target[0]) or network.is_cut(target[0], self.name):
            # Like TCP, which repeats the first packet after 1, 2, 4 seconds and so on.
            pause = min(pause, CONNECT_TIMEOUT_SECONDS - waited)
            if pause <= 0:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(pause)
            waited, pause = waited + pause, pause * 2
        listener = network.listeners.get(target)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        local = self.name, network.free_port()
        near = SimTransport(loop, contextvars.copy_context(), local, target)
        far = SimTransport(loop, listener.context, target, local)
        network.join(near, process, far, listener.process)
        # Accepted by the listener's process, whatever this one does.
        loop.call_soon(_accept, listener, far, context=listener.context)
        await asyncio.sleep(network.delay())
        if near.is_closing():
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        protocol = factory()
        near.begin(protocol)
        return near, protocol

    async def resolve(self, host: str) -> list[str]:
        """Return the host's name, which is also its address."""
        return [self._resolve(host)]

    def file_socket(self, transport: asyncio.BaseTransport) -> SimFileSocket | None:
        """Return a socket that sends files through a transport of this network."""
        return SimFileSocket(transport) if isinstance(transport, SimTransport) else None


def _accept(listener: SimListener, transport: SimTransport) -> None:
    transport.begin(listener.factory())


class _Link:
    """One direction between two hosts (implements Link)."""

    def __init__(self, network: "SimNetwork", source: str, target: str) -> None:
        self._network = network
        self._source = source
        self._target = target

    def delay(self) -> float:
        return self._network.delay()

    def cut(self, data: bytes) -> list[bytes]:
        return self._network.cut(data)

    def hold(self, pipe: Pipe) -> bool:
        return self._network.hold(self._source, self._target, pipe)

    def note(self, event: str, end: SimTransport, size_bytes: int) -> None:
        local, remote = end.get_extra_info("sockname"), end.get_extra_info("peername")
        self._network.trace.record("net", event, *remote, *local, size_bytes)


class SimNetwork:
    """All hosts and the links between them; delays are in seconds."""

    def __init__(
        self,
        rng: Rng,
        trace: Trace | None = None,
        *,
        delay_min: float = 5e-5,
        delay_max: float = 2e-3,
    ) -> None:
        self.trace = trace or Trace(keep=0)
        self.listeners: dict[Address, SimListener] = {}
        self._rng = rng
        self._delay_min, self._delay_max = delay_min, delay_max
        # Every delay is this many times as long.
        self.slowness = 1.0
        self._last_port = FIRST_FREE_PORT - 1
        self._connections: list[tuple[SimTransport, SimTransport]] = []
        self._pruned_at = _PRUNED_AT_LEAST
        self._cuts: set[tuple[str, str]] = set()
        self._held: dict[Pipe, tuple[str, str]] = {}

    def host(self, name: str) -> SimNet:
        """Return the Net port of a machine; its name is also its address."""
        return SimNet(self, name)

    def free_port(self) -> int:
        """Return a port that was never used."""
        self._last_port += 1
        return self._last_port

    def join(
        self,
        near: SimTransport,
        near_process: Process | None,
        far: SimTransport,
        far_process: Process | None,
    ) -> None:
        """Connect two ends; if one of the processes dies, the other end is reset."""
        near_host, far_host = near.get_extra_info("sockname")[0], far.get_extra_info("sockname")[0]
        forward = Pipe(_Link(self, near_host, far_host), far)
        back = Pipe(_Link(self, far_host, near_host), near)
        near.attach(forward, back)
        far.attach(back, forward)
        if len(self._connections) >= self._pruned_at:
            # Not for each connection: a hundred brokers have ten thousand.
            self._connections = [pair for pair in self._connections if not _is_over(pair)]
            self._pruned_at = 2 * len(self._connections) + _PRUNED_AT_LEAST
        self._connections.append((near, far))
        for end, process in ((near, near_process), (far, far_process)):
            if process is not None:
                process.on_kill(end.abort)
                # A long life has many connections, and would keep each of them.
                end.on_lost = partial(process.forget_on_kill, end.abort)

    # -- links ----------------------------------------------------------------------------------

    def delay(self) -> float:
        """Draw the travel time of a piece; sometimes it is much longer than usual."""
        span = self._delay_max - self._delay_min
        seconds = self._delay_min + span * self._rng.below(1000) / 1000
        return seconds * self.slowness * (20 if self._rng.below(100) == 0 else 1)

    def cut(self, data: bytes) -> list[bytes]:
        """Return the pieces in which bytes travel: usually one, sometimes split at any position."""
        pieces = []
        while len(data) > PIECE_BYTES_MAX:
            pieces.append(data[:PIECE_BYTES_MAX])
            data = data[PIECE_BYTES_MAX:]
        if len(data) > 1 and self._rng.below(4) == 0:
            at = 1 + self._rng.below(len(data) - 1)
            pieces.append(data[:at])
            data = data[at:]
        return [*pieces, data]

    def is_cut(self, source: str, target: str) -> bool:
        """Return True if no bytes pass from one host to another."""
        return (source, target) in self._cuts

    def hold(self, source: str, target: str, pipe: Pipe) -> bool:
        """Hold back a pipe's bytes if its link is cut, until the link heals."""
        if not self.is_cut(source, target):
            return False
        self._held[pipe] = source, target
        return True

    # -- faults ---------------------------------------------------------------------------------

    def partition(
        self, sources: Iterable[str], targets: Iterable[str], *, both_ways: bool = True
    ) -> None:
        """Cut the links from the first hosts to the others, in both directions unless `both_ways`
        is False.
        """
        target_hosts = list(targets)
        for source in sources:
            for target in target_hosts:
                self._cuts.add((source, target))
                if both_ways:
                    self._cuts.add((target, source))

    def heal(self) -> None:
        """Restore all links; bytes that were held back travel on."""
        self._cuts.clear()
        pipes, self._held = list(self._held), {}
        for pipe in pipes:
            pipe.go_on()

    def reset(self, first_host: str, second_host: str) -> int:
        """Reset every connection between two hosts; return how many there were."""
        broken = 0
        for near, far in self._connections:
            hosts = {near.get_extra_info("sockname")[0], far.get_extra_info("sockname")[0]}
            if hosts == {first_host, second_host} and not _is_over((near, far)):
                near.reset()
                broken += 1
        return broken


def _is_over(pair: tuple[SimTransport, SimTransport]) -> bool:
    return all(end.is_closing() for end in pair)

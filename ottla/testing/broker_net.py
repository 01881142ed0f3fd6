"""The network of one broker in a test: its connections to other brokers can be cut.

Only connections that a broker opens are affected, so clients reach every broker. A cut connection
stays open and carries nothing, like one whose packets are lost. Bytes that are written during the
cut are delivered after the cut is healed, unless the peers have closed the connection. A new
connection is established after the end of the cut.
"""

import asyncio
import ssl
import threading
from typing import Any, Protocol, cast

from ottla.net.listener import RealListener, RealNet
from ottla.net.port import SYSTEM_BUFFERS, ListenerTls, ProtocolFactory, SocketBuffers

# Closed connections are forgotten after this number of accepted ones.
_PRUNED_AFTER = 1_000


class NetworkCuts:
    """The pairs of brokers that cannot reach each other; all brokers of a cluster share it."""

    def __init__(self) -> None:
        self._isolated: set[int] = set()
        self._owners: dict[int, int] = {}
        self._nets: list[BrokerNet] = []
        self._lock = threading.Lock()

    def add(self, net: "BrokerNet") -> None:
        """Add the network of a broker that starts."""
        with self._lock:
            self._nets.append(net)

    def remove(self, net: "BrokerNet") -> None:
        """Remove the network of a broker that has ended."""
        with self._lock:
            self._nets.remove(net)

    def own(self, port: int, broker: int) -> None:
        """Note which broker listens on a port."""
        self._owners[port] = broker

    def isolate(self, broker: int) -> None:
        """Cut a broker from all others, in both directions."""
        self._isolated.add(broker)
        self._apply()

    def heal(self, broker: int) -> None:
        """Connect a broker with the others again."""
        self._isolated.discard(broker)
        self._apply()

    def is_cut(self, broker: int, port: int) -> bool:
        """Return True if the broker cannot reach the port."""
        target = self._owners.get(port)
        return target != broker and bool({broker, target} & self._isolated)

    def _apply(self) -> None:
        with self._lock:
            nets = list(self._nets)
        for net in nets:
            net.apply_cuts()


class CutTransport(asyncio.Transport):
    """A transport that holds back what is sent and received while it is cut."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._is_cut = False
        self._is_paused = False
        self._is_closing = False
        self._held_back: list[bytes] = []

    def set_cut(self, is_cut: bool) -> None:
        """Cut or heal the connection; call it on the loop of the connection."""
        if is_cut is self._is_cut or self._inner.is_closing():
            return
        self._is_cut = is_cut
        if is_cut:
            if not self._is_paused:
                self._inner.pause_reading()
            return
        held_back, self._held_back = self._held_back, []
        self._inner.writelines(held_back)
        if self._is_closing:
            self._inner.close()
        elif not self._is_paused:
            self._inner.resume_reading()

    def write(self, data: Any) -> None:
        """Send data, or hold it back."""
        if self._is_cut:
            self._held_back.append(bytes(data))
        else:
            self._inner.write(data)

    def writelines(self, list_of_data: Any) -> None:
        """Send parts, or hold them back."""
        if self._is_cut:
            self._held_back += map(bytes, list_of_data)
        else:
            self._inner.writelines(list_of_data)

    def pause_reading(self) -> None:
        """Stop receiving."""
        self._is_paused = True
        if not self._is_cut:
            self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._is_paused = False
        if not self._is_cut:
            self._inner.resume_reading()

    def close(self) -> None:
        """Close; the peer of a cut connection does not notice before the cut is healed."""
        self._is_closing = True
        if self._is_cut:
            # The broker itself sees a closed connection at once.
            self._is_cut = False
            self._inner.abort()
        else:
            self._inner.close()

    def abort(self) -> None:
        """Close at once."""
        self._inner.abort()

    def is_closing(self) -> bool:
        """Return True if the transport is closing or closed."""
        return self._is_closing or self._inner.is_closing()

    def is_reading(self) -> bool:
        """Return True if the transport receives."""
        return not self._is_paused

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return facts about the connection."""
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._inner.get_write_buffer_size() + sum(map(len, self._held_back))

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low and the high mark."""
        return self._inner.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks."""
        self._inner.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        """Return True if half of the connection can be closed."""
        return self._inner.can_write_eof()

    def write_eof(self) -> None:
        """Close the sending half."""
        self._inner.write_eof()

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._inner.get_protocol()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._inner.set_protocol(protocol)


class _Abortable(Protocol):
    """The protocol of an accepted connection."""

    def abort(self) -> None:
        """Close at once."""
        ...


class BrokerNet(RealNet):
    """The network of broker `broker` from its start to its end."""

    def __init__(self, broker: int, cuts: NetworkCuts) -> None:
        self._broker = broker
        self._cuts = cuts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._healed = asyncio.Event()
        self._listeners: list[RealListener] = []
        self._outgoing: dict[CutTransport, int] = {}
        self._accepted: list[_Abortable] = []
        self._is_alive = True

    def apply_cuts(self) -> None:
        """Cut and heal the connections as `NetworkCuts` says; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._apply_cuts)

    def _apply_cuts(self) -> None:
        self._healed.set()
        self._healed = asyncio.Event()
        for transport, port in list(self._outgoing.items()):
            transport.set_cut(self._cuts.is_cut(self._broker, port))

    async def kill(self) -> None:
        """Close all connections and listeners at once, like the end of a process."""
        self._is_alive = False
        for listener in self._listeners:
            await listener.close()
        for protocol in self._accepted:
            protocol.abort()
        for transport in list(self._outgoing):
            transport.abort()

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
        tls: ListenerTls | None = None,
    ) -> RealListener:
        """Accept on host and port."""
        self._loop = asyncio.get_running_loop()

        def accept() -> asyncio.BufferedProtocol:
            protocol = factory()
            if len(self._accepted) % _PRUNED_AFTER == _PRUNED_AFTER - 1:
                self._accepted = [
                    accepted
                    for accepted in self._accepted
                    if not getattr(accepted, "is_closed", False)
                ]
            self._accepted.append(cast(_Abortable, protocol))
            return protocol

        listener = await super().listen(host, port, accept, buffers, tls)
        self._listeners.append(listener)
        self._cuts.own(listener.port, self._broker)
        return listener

    async def connect(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect over TCP; waits while the broker at the port cannot be reached."""
        while self._cuts.is_cut(self._broker, port):
            await self._healed.wait()
        if not self._is_alive:
            raise ConnectionRefusedError(f"broker {self._broker} has been killed")
        inner, protocol = await super().connect(host, port, factory, tls)
        transport = CutTransport(inner)
        self._outgoing = {
            outgoing: number
            for outgoing, number in self._outgoing.items()
            if not outgoing.is_closing()
        }
        self._outgoing[transport] = port
        transport.set_cut(self._cuts.is_cut(self._broker, port))
        # The protocol has the real transport so far, and nothing has been sent.
        protocol.connection_made(transport)
        return transport, protocol

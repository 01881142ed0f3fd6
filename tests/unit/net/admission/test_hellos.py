"""Connections between TCP and TLS wait for their hello and for their turn, on real sockets."""

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.net.admission.handshakes import HandshakeOrder, Pace, Turn
from ottla.net.admission.hellos import Hellos
from ottla.net.admission.newcomers import Bounds
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.listener import RealNet
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import TlsFiles
from ottla.net.unsent import UnsentBudget
from tests.certificates import self_signed


class Site:
    """An endpoint with TLS that echoes frames, and its clients."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        chain = self_signed(folder)
        files = TlsFiles(str(chain), "", str(chain.with_suffix(".crt")), "none", checks_host=True)
        self.client_tls = client_context(files)
        self.endpoint = Endpoint(
            "SSL",
            limits=Limits(),
            budget=ReceiveBudget(1_000_000),
            unsent=UnsentBudget(1_000_000),
            buffers=ReceiveBuffers(),
            tls=server_context(files),
        )
        self.endpoint.rooms.bound(bounds)
        self.sockets: list[socket.socket] = []

    async def open(self, order: HandshakeOrder) -> None:
        self.endpoint.handshake_order = order
        await self.endpoint.open(RealNet(), "127.0.0.1", 0)
        self.endpoint.serve(self)

    def frame(self, connection: Connection, frame: memoryview) -> None:
        connection.send([bytes(frame)])

    def hello(self) -> bytes:
        """Return the first bytes of a client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.client_tls.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    async def connect(self, data: bytes = b"") -> socket.socket:
        """Connect without TLS, and send bytes."""
        peer = socket.socket()
        self.sockets.append(peer)
        peer.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(peer, ("127.0.0.1", self.endpoint.port))
        if data:
            await loop.sock_sendall(peer, data)
        return peer

    async def ask(self) -> bytes:
        """Connect with TLS, send a frame, and return the response."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.endpoint.port, ssl=self.client_tls
        )
        writer.write(b"\0\0\0\5hello")
        answer = await reader.readexactly(9)
        writer.close()
        return answer

    @property
    def order(self) -> HandshakeOrder:
        return self.endpoint.handshake_order


@contextlib.asynccontextmanager
async def opened(
    folder: Path,
    pace: Pace | None = None,
    bounds: Bounds | None = None,
    order: HandshakeOrder | None = None,
) -> AsyncIterator[Site]:
    """Return a site whose endpoint serves."""
    site = Site(folder, bounds or Bounds())
    await site.open(order or HandshakeOrder(pace or Pace()))
    try:
        yield site
    finally:
        for peer in site.sockets:
            peer.close()
        await site.endpoint.close(1)
        assert site.endpoint.handshakes_count == 0
        assert site.order.is_empty


async def until(condition) -> None:
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_connection_with_tls_is_served(tmp_path: Path) -> None:
    """Hellos of ordinary clients begin a handshake."""
    async with opened(tmp_path) as site:
        assert await site.ask() == b"\0\0\0\5hello"
        assert site.order.begun_count == 1


@pytest.mark.parametrize("count", [1, 4, 5, 100])
async def test_incomplete_hello_begins_no_handshake(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise many peers could prepare handshakes and complete all hellos at the same time."""
    looks = []
    look = vars(Hellos)["_readable"]
    monkeypatch.setattr(
        Hellos, "_readable", lambda self, one: (looks.append(one), look(self, one))[0]
    )
    async with opened(tmp_path) as site:
        hello = site.hello()
        peer = await site.connect(hello[:count])
        assert await site.ask() == b"\0\0\0\5hello"
        for _ in range(200):
            await asyncio.sleep(0)
        assert site.order.begun_count == 1
        # A part of a hello does not wake the loop again and again.
        assert len(looks) <= 4
        await asyncio.get_running_loop().sock_sendall(peer, hello[count:])
        await until(lambda: site.order.begun_count == 2)
        assert await asyncio.get_running_loop().sock_recv(peer, 5)


class Turns(HandshakeOrder):
    """Notes in which iteration of the loop handshakes begin."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.iteration, self.begun = 0, Counter[int]()
        self._count()

    def _count(self) -> None:
        self.iteration += 1
        asyncio.get_running_loop().call_soon(self._count)

    def take_turn(self, now: float) -> Turn:
        turn = super().take_turn(now)
        self.begun[self.iteration] += len(turn.begun)
        return turn


async def test_many_hellos_at_once_are_spread_over_turns(tmp_path: Path) -> None:
    """Between the handshakes of a crowd the loop serves others."""
    turns = Turns(Pace(at_once=2))
    async with opened(tmp_path, order=turns) as site:
        hello = site.hello()
        for _ in range(60):
            # Without the loop: the kernel accepts the connections.
            peer = socket.create_connection(("127.0.0.1", site.endpoint.port))
            peer.sendall(hello)
            site.sockets.append(peer)
        await until(lambda: turns.begun_count == 60)
        assert max(turns.begun.values()) == 2


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
async def test_peer_that_disconnects_or_has_no_tls_is_closed(tmp_path: Path, data: bytes) -> None:
    """Nothing of it is left, and no handshake has begun."""
    async with opened(tmp_path) as site:
        peer = await site.connect(data)
        await until(lambda: site.endpoint.handshakes_count or data[:1] == b"G")
        peer.close()
        await until(lambda: not site.endpoint.handshakes_count)
        assert site.order.begun_count == 0


async def test_silent_peer_is_closed(tmp_path: Path) -> None:
    """A peer that sends no hello is closed when its time is over."""
    async with opened(tmp_path, Pace(hello_seconds=0.1)) as site:
        peer = await site.connect()
        async with asyncio.timeout(10):
            assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
        assert site.order.silent_count == 1


async def test_stuck_handshakes_make_room_for_others(tmp_path: Path) -> None:
    """Peers that say hello and nothing more do not keep a client out."""
    pace = Pace(at_once=8, unfinished_max=8, patience_seconds=0.1)
    async with opened(tmp_path, pace) as site:
        hello = site.hello()
        for _ in range(8):
            await site.connect(hello)
        await until(lambda: site.order.begun_count == 8)
        async with asyncio.timeout(10):
            assert await site.ask() == b"\0\0\0\5hello"
        assert site.order.abandoned_count >= 1


async def test_address_with_too_many_handshakes_is_refused(tmp_path: Path) -> None:
    """The bounds of strangers hold before TLS is established."""
    async with opened(tmp_path, bounds=Bounds(10, 3)) as site:
        for _ in range(5):
            await site.connect()
        await until(lambda: site.endpoint.rooms.handshakes.refused_count == 2)
        assert site.endpoint.handshakes_count == 3


async def test_stop_ends_all_handshakes(tmp_path: Path) -> None:
    """A broker that stops gives up silent peers, and those in a handshake."""
    async with opened(tmp_path) as site:
        hello = site.hello()
        await site.connect()
        await site.connect(hello)
        await until(lambda: site.order.begun_count == 1)
    assert site.order.is_empty

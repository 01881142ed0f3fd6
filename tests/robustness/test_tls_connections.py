"""Connections with TLS leave nothing behind: without garbage collections their memory is freed."""

import asyncio
import gc
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.listener import RealNet
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.requests import RequestConnection
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import TlsFiles
from ottla.net.unsent import UnsentBudget
from tests.certificates import self_signed

ROUNDS = 20


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """Return a certificate that server and client use."""
    chain = self_signed(tmp_path)
    return TlsFiles(str(chain), "", str(chain.with_suffix(".crt")), "none", checks_host=True)


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Disable the garbage collector: only reference counts free objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Echo:
    """Returns each frame unchanged."""

    def frame(self, connection: Connection, frame: memoryview) -> None:
        connection.send([bytes(frame)])


@asynccontextmanager
async def opened(tls: ssl.SSLContext) -> AsyncIterator[Endpoint]:
    """Return an endpoint with TLS that serves requests."""
    buffers, budget = ReceiveBuffers(), ReceiveBudget(1_000_000)
    endpoint = Endpoint(
        "SSL",
        limits=Limits(),
        budget=budget,
        unsent=UnsentBudget(1_000_000),
        buffers=buffers,
        tls=tls,
    )
    await endpoint.open(RealNet(), "127.0.0.1", 0)
    endpoint.serve(Echo())
    yield endpoint
    await endpoint.close(1)


async def _until_gone(endpoint: Endpoint) -> None:
    """Let the loop run until the broker's side has noticed the ends of the connections."""
    while endpoint.connections_count or endpoint.handshakes_count:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)


async def _exchange(endpoint: Endpoint, tls: ssl.SSLContext) -> None:
    """Send a frame, read the response, and disconnect."""
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port, ssl=tls)
    writer.write(b"\0\0\0\5hello")
    assert await reader.readexactly(9) == b"\0\0\0\5hello"
    writer.close()
    await writer.wait_closed()


async def _leave_early(endpoint: Endpoint, tls: ssl.SSLContext) -> None:
    """Connect with TLS and disconnect without a request."""
    _, writer = await asyncio.open_connection("127.0.0.1", endpoint.port, ssl=tls)
    writer.close()
    await writer.wait_closed()


async def _send_nonsense(endpoint: Endpoint, _tls: ssl.SSLContext) -> None:
    """Send bytes that are not TLS, so that the handshake fails."""
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ConnectionError):
        while not reader.at_eof():
            await reader.read(1000)
        raise ConnectionResetError
    writer.close()


async def _hang_up(endpoint: Endpoint, _tls: ssl.SSLContext) -> None:
    """Connect and disconnect before the handshake."""
    loop = asyncio.get_running_loop()
    with socket.socket() as peer:
        peer.setblocking(False)
        await loop.sock_connect(peer, ("127.0.0.1", endpoint.port))
        while not endpoint.handshakes_count:
            await asyncio.sleep(0)


Visit = Callable[[Endpoint, ssl.SSLContext], Awaitable[None]]


@pytest.mark.parametrize("visit", [_exchange, _leave_early, _send_nonsense, _hang_up])
async def test_closed_connection_is_freed_without_a_garbage_collection(
    files: TlsFiles, no_collections: None, visit: Visit
) -> None:
    """Twenty connections leave no transport, no SSL object and no connection behind."""
    client = client_context(files)
    async with opened(server_context(files)) as endpoint:
        counts = []
        for _ in range(3):
            for _ in range(ROUNDS):
                await visit(endpoint, client)
            await _until_gone(endpoint)
            counts.append(_server_objects())
        assert counts[2] == counts[0], (counts[2] - counts[0]) or (counts[0] - counts[2])


def _server_objects() -> Counter[str]:
    """Count the objects of the broker's side; the client's objects are asyncio's own streams."""
    counts: Counter[str] = Counter()
    for item in gc.get_objects():
        is_ours = isinstance(item, Connection | RequestConnection)
        is_secret = isinstance(item, ssl.SSLObject) and item.server_side
        if is_ours or is_secret:
            counts[type(item).__name__] += 1
    return counts


async def test_connection_to_a_broker_is_freed_without_a_garbage_collection(
    files: TlsFiles, no_collections: None
) -> None:
    """The same for connections that this broker has opened."""
    client = client_context(files)
    async with opened(server_context(files)) as endpoint:
        for _ in range(ROUNDS):
            await _open_and_close(endpoint, client)
            await _until_gone(endpoint)
        assert not _server_objects()


async def _open_and_close(endpoint: Endpoint, tls: ssl.SSLContext) -> None:
    _, connection = await RealNet().connect(
        "127.0.0.1", endpoint.port, lambda: RequestConnection("test"), tls
    )
    assert isinstance(connection, RequestConnection)
    connection.close()


async def test_refused_certificate_is_freed_without_a_garbage_collection(
    files: TlsFiles, no_collections: None
) -> None:
    """The same for connections to a broker whose certificate this broker does not trust."""
    suspicious = ssl.create_default_context()
    async with opened(server_context(files)) as endpoint:
        for _ in range(ROUNDS):
            with pytest.raises(ssl.SSLCertVerificationError):
                await _open_and_close(endpoint, suspicious)
            await _until_gone(endpoint)
        assert not [item for item in gc.get_objects() if isinstance(item, ssl.SSLObject)]
        assert not _server_objects()

"""An endpoint on real sockets: admission, timeouts, draining."""

import asyncio
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock

import pytest

from ottla.base import tasks as supervision
from ottla.base.tasks import Tasks
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection, Reply
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.listener import RealNet
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import TlsFiles
from ottla.net.unsent import UnsentBudget
from tests.certificates import self_signed

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """Responds with the frame; the test responds to `slow` frames."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def frame(self, connection: Connection, frame: memoryview) -> None:
        if bytes(frame) == b"slow":
            self.replies.append(connection.defer())
        else:
            connection.send([bytes(frame)])


class Site:
    """An open endpoint and the clients that connected to it."""

    def __init__(
        self,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        by_host: Counter[str] | None = None,
    ) -> None:
        self.echo = Echo()
        self.tasks = Tasks()
        self.endpoint = Endpoint(
            "PLAINTEXT",
            limits=limits,
            budget=ReceiveBudget(10**8),
            unsent=UnsentBudget(10**8),
            buffers=ReceiveBuffers(),
            tasks=self.tasks,
            tls=tls,
        )
        if by_host is not None:
            self.endpoint.count_hosts_in(by_host)
        self.clients: list[asyncio.StreamWriter] = []

    async def connect(self, tls: ssl.SSLContext | None = None) -> Streams:
        port = self.endpoint.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        self.clients.append(writer)
        return reader, writer


@pytest.fixture
async def open_site() -> AsyncIterator[Callable[[Limits], "asyncio.Future[Site]"]]:
    """Open an endpoint on a free port of loopback with these limits."""
    sites: list[Site] = []

    async def open_with(limits: Limits, *options: Any) -> Site:
        site = Site(limits, *options)
        sites.append(site)
        await site.endpoint.open(RealNet(), "127.0.0.1", 0)
        site.endpoint.serve(site.echo)
        return site

    yield open_with
    for site in sites:
        await site.endpoint.close(0.2)
        for writer in site.clients:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def ask(streams: Streams, body: bytes) -> bytes:
    reader, writer = streams
    writer.write(struct.pack(">i", len(body)) + body)
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def test_requests_are_answered_over_tcp(open_site) -> None:
    """Small and large frames are returned as they were sent."""
    site = await open_site(Limits())
    streams = await site.connect()
    for body in (b"a", b"b" * 3_000_000, b"c" * 70_000):
        assert await ask(streams, body) == body


async def test_connection_above_the_limit_is_closed(open_site) -> None:
    """The limit is max.connections, and a client that leaves frees its place."""
    site = await open_site(Limits(connections_max=2))
    first, second = await site.connect(), await site.connect()
    assert await ask(first, b"1") == b"1"
    assert await ask(second, b"2") == b"2"
    third = await site.connect()
    assert await third[0].read() == b""
    first[1].close()
    await first[1].wait_closed()
    while site.endpoint.connections_count > 1:
        await asyncio.sleep(0)
    assert await ask(await site.connect(), b"4") == b"4"


async def test_one_address_has_its_own_limit(open_site) -> None:
    """Connections above max.connections.per.ip are closed."""
    site = await open_site(Limits(connections_per_host_max=1))
    assert await ask(await site.connect(), b"1") == b"1"
    second = await site.connect()
    assert await second[0].read() == b""


async def test_an_address_can_have_another_limit(open_site) -> None:
    """An address in max.connections.per.ip.overrides has this limit, in both directions."""
    for most, overridden in ((1, 2), (3, 2)):
        limits = Limits(
            connections_per_host_max=most, connections_by_host_max={"127.0.0.1": overridden}
        )
        site = await open_site(limits)
        assert [await ask(await site.connect(), b"1") for _ in range(2)] == [b"1"] * 2
        third = await site.connect()
        assert await third[0].read() == b""


async def test_limit_of_an_address_is_for_all_listeners(open_site) -> None:
    """A client cannot have as many connections again on another one, as in Kafka."""
    by_host: Counter[str] = Counter()
    first, second = [
        await open_site(Limits(connections_per_host_max=1), None, by_host) for _ in range(2)
    ]
    streams = await first.connect()
    assert await ask(streams, b"1") == b"1"
    refused = await second.connect()
    assert await refused[0].read() == b""
    streams[1].close()
    await streams[1].wait_closed()
    while by_host:
        await asyncio.sleep(0)
    assert await ask(await second.connect(), b"2") == b"2"


@pytest.mark.parametrize(
    "limits",
    [Limits(connections_per_host_max=2), Limits(connections_max=2)],
    ids=["max.connections.per.ip", "max.connections"],
)
async def test_handshake_of_tls_counts_as_a_connection(
    open_site, tmp_path: Path, limits: Limits
) -> None:
    """A client that begins many handshakes and completes none is limited, too."""
    chain = self_signed(tmp_path)
    files = TlsFiles(str(chain), "", str(chain.with_suffix(".crt")), "none", checks_host=True)
    site = await open_site(limits, server_context(files))
    first, _ = await site.connect(), await site.connect()
    third = await site.connect()
    assert await third[0].read() == b""
    first[1].close()
    await first[1].wait_closed()
    # The broker may not have noticed yet that the first one has gone.
    async with asyncio.timeout(20):
        while True:
            try:
                streams = await site.connect(client_context(files))
                break
            except OSError:
                continue
    assert await ask(streams, b"4") == b"4"


async def test_connection_with_tls_counts_once(open_site, tmp_path: Path) -> None:
    """Its handshake does not take the place of another connection."""
    chain = self_signed(tmp_path)
    files = TlsFiles(str(chain), "", str(chain.with_suffix(".crt")), "none", checks_host=True)
    site = await open_site(Limits(connections_per_host_max=2), server_context(files))
    first = await site.connect(client_context(files))
    second = await site.connect(client_context(files))
    for streams in (first, second):
        assert await ask(streams, b"x") == b"x"


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (Limits(idle_seconds=0.05), struct.pack(">i", 1) + b"x"),
        (Limits(authentication_seconds=0.05), b""),
        (Limits(frame_seconds=0.05), struct.pack(">i", 10) + b"half"),
    ],
    ids=["idle", "never asked", "half a frame"],
)
async def test_slow_clients_are_closed(open_site, limits: Limits, sent: bytes) -> None:
    """Idle connections, silent ones and incomplete frames are closed after a timeout."""
    site = await open_site(limits)
    reader, writer = await site.connect()
    writer.write(sent)
    async with asyncio.timeout(5):
        data = await reader.read()
    assert data in (b"", struct.pack(">i", 1) + b"x")


async def test_failure_does_not_end_the_timeouts(open_site, monkeypatch, caplog) -> None:
    """An exception while connections are checked is reported, and idle ones are closed later."""
    monkeypatch.setattr(supervision, "RESTART_SECONDS", 0.01)
    site = await open_site(Limits(idle_seconds=0.05))
    reader, writer = await site.connect()
    writer.write(struct.pack(">i", 4) + b"slow")
    while not site.echo.replies:
        await asyncio.sleep(0)
    (connection,) = site.endpoint._connections
    failing = PropertyMock(side_effect=RuntimeError("a fault"))
    with monkeypatch.context() as patches:
        patches.setattr(type(connection), "undelivered_bytes", failing)
        while not site.tasks.failures["timeouts of connections"]:
            await asyncio.sleep(0)
    assert "timeouts of connections PLAINTEXT" in caplog.text
    site.echo.replies[0].send([b"done"])
    async with asyncio.timeout(5):
        assert await reader.read() == struct.pack(">i", 4) + b"done"


async def test_connection_with_a_pending_request_is_not_idle(open_site) -> None:
    """A delayed request keeps its connection open beyond connections.max.idle.ms."""
    site = await open_site(Limits(idle_seconds=0.05))
    reader, writer = await site.connect()
    writer.write(struct.pack(">i", 4) + b"slow")
    while not site.echo.replies:
        await asyncio.sleep(0)
    (connection,) = site.endpoint._connections
    assert site.endpoint._reason_to_close(connection, connection.active_at + 3600) == ""
    site.echo.replies[0].send([b"done"])
    assert await reader.readexactly(8) == struct.pack(">i", 4) + b"done"


async def test_close_sends_pending_responses(open_site) -> None:
    """A deferred response is sent while the endpoint closes, and no new connection is accepted."""
    site = await open_site(Limits())
    reader, writer = await site.connect()
    writer.write(struct.pack(">i", 4) + b"slow")
    while not site.echo.replies:
        await asyncio.sleep(0)
    port = site.endpoint.port
    closing = asyncio.ensure_future(site.endpoint.close(5))
    await asyncio.sleep(0)
    site.echo.replies[0].send([b"done"])
    await closing
    assert await reader.read() == struct.pack(">i", 4) + b"done"
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_close_drops_requests_after_its_timeout(open_site) -> None:
    """A request without a response does not keep the endpoint open."""
    site = await open_site(Limits())
    _, writer = await site.connect()
    writer.write(struct.pack(">i", 4) + b"slow")
    while not site.echo.replies:
        await asyncio.sleep(0)
    await site.endpoint.close(0.05)
    assert site.endpoint.connections_count == 0


async def test_hurry_ends_the_wait_for_responses(open_site) -> None:
    """A call of `hurry` before or during `close` ends the wait for pending responses."""
    for is_early in (True, False):
        site = await open_site(Limits())
        _, writer = await site.connect()
        writer.write(struct.pack(">i", 4) + b"slow")
        while not site.echo.replies:
            await asyncio.sleep(0)
        if is_early:
            site.endpoint.hurry()
        closing = asyncio.ensure_future(site.endpoint.close(3600))
        await asyncio.sleep(0)
        if not is_early:
            site.endpoint.hurry()
        async with asyncio.timeout(5):
            await closing
        assert site.endpoint.connections_count == 0


async def test_connection_above_the_rate_is_closed_after_a_delay(open_site) -> None:
    """It gets no response, and is closed later: its client would reconnect immediately (KIP-612)."""
    site = await open_site(Limits())
    seen: list[str] = []

    def throttle_ms(host: str) -> int:
        seen.append(host)
        return 0 if len(seen) == 1 else 60

    site.endpoint.throttle_ms = throttle_ms
    first, second = await site.connect(), await site.connect()
    began = asyncio.get_running_loop().time()
    assert await ask(first, b"hello") == b"hello"
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await ask(second, b"hello")
    assert asyncio.get_running_loop().time() - began > 0.04
    assert await ask(first, b"again") == b"again"
    assert seen == ["127.0.0.1"] * 2

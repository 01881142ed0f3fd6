"""The HTTP server of the metrics port, also with malformed and abandoned requests."""

import asyncio
import errno
import os
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from ottla.base.tasks import Tasks
from ottla.net.listener import RealNet
from ottla.server.monitoring import http
from ottla.server.monitoring.http import HttpResponse, HttpServer, Request

# More than the buffers of two sockets can take.
BODY = [b"x" * 10_000] * 2000


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    """Return a server of one short and one long page."""
    tasks = Tasks()

    async def page(_: Request) -> HttpResponse:
        return HttpResponse(200, "text/plain", [b"hello\n"])

    async def large(_: Request) -> HttpResponse:
        return HttpResponse(200, "text/plain", list(BODY))

    async def echo(request: Request) -> HttpResponse:
        return HttpResponse(
            200, "text/plain", [f"{request.path} {dict(request.parameters)}".encode()]
        )

    async def broken(_: Request) -> HttpResponse:
        raise ValueError("a fault of the page")

    pages = {"/page": page, "/large": large, "/below/": echo, "/broken": broken}
    running = HttpServer(pages, tasks)
    await running.open(RealNet(), "127.0.0.1", 0)
    yield running
    await running.close()
    await tasks.close()


async def ask(server: HttpServer, *pieces: bytes) -> bytes:
    """Send the pieces one by one and return the whole response."""
    reader, writer = await asyncio.open_connection(*server.address)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /page HTTP/1.1", b"200 OK"),
        (b"GET /page HTTP/1.0", b"200 OK"),
        (b"GET /page?a=1 HTTP/1.1", b"200 OK"),
        (b"HEAD /page HTTP/1.1", b"200 OK"),
        (b"GET /other HTTP/1.1", b"404 Not Found"),
        (b"POST /page HTTP/1.1", b"405 Method Not Allowed"),
        (b"GET /page", b"400 Bad Request"),
        (b"GET  HTTP/1.1", b"400 Bad Request"),
        (b"hello", b"400 Bad Request"),
    ],
)
async def test_a_request_is_answered_by_its_first_line(
    server: HttpServer, request_line: bytes, status: bytes
) -> None:
    """The headers of a request do not matter."""
    response = await ask(server, request_line + b"\r\nHost: x\r\nAccept: */*\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert b"Connection: close\r\n" in response
    is_page = status == b"200 OK" and request_line.startswith(b"GET")
    assert response.endswith(b"\r\n\r\nhello\n") == is_page


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (b"/below/", b"/below/ {}"),
        (b"/below/a%20b?x=1&y=%2C&x=2&empty=", b"/below/a b {'x': '2', 'y': ',', 'empty': ''}"),
        (b"/below/%ff?%ff", "/below/\ufffd {'\ufffd': ''}".encode()),
    ],
)
async def test_page_gets_path_and_query(server: HttpServer, target: bytes, text: bytes) -> None:
    """A page whose path ends with a slash serves all paths below it, and sees the parameters."""
    response = await ask(server, b"GET " + target + b" HTTP/1.1\r\n\r\n")
    assert response.endswith(b"\r\n\r\n" + text)


async def test_request_may_arrive_in_pieces(server: HttpServer) -> None:
    """The request is sent byte by byte."""
    request = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
    response = await ask(server, *(request[at : at + 1] for at in range(len(request))))
    assert response.endswith(b"hello\n")


async def test_large_page_is_sent_completely(server: HttpServer) -> None:
    """A page is sent as fast as the client reads it."""
    response = await ask(server, b"GET /large HTTP/1.1\r\n\r\n")
    assert response.partition(b"\r\n\r\n")[2] == b"".join(BODY)


async def test_kafka_client_gets_an_error_at_once(server: HttpServer) -> None:
    """A Kafka request gets an error at once instead of a wait for the end of a line."""
    response = await ask(server, b"\0\0\0\x14\0\x12\0\0\0\0\0\1\0\4test")
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b"it uses HTTP" in response


async def test_endless_headers_are_rejected(server: HttpServer) -> None:
    """The server buffers at most 16 KiB of headers."""
    response = await ask(server, b"GET /page HTTP/1.1\r\n", b"X: " + b"y" * 20_000)
    assert response.startswith(b"HTTP/1.1 431 ")


async def test_garbage_does_no_harm(server: HttpServer) -> None:
    """A thousand kinds of garbage each end their connection, and the next request succeeds."""
    chance = random.Random(11)
    for _ in range(300):
        size = chance.choice((1, 5, 100, 5000))
        await ask_and_leave(server, chance.randbytes(size))
    assert (await ask(server, b"GET /page HTTP/1.1\r\n\r\n")).endswith(b"hello\n")


async def ask_and_leave(server: HttpServer, data: bytes) -> None:
    """Send and close without reading."""
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(data)
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_connection_without_a_request_times_out(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection without a request is closed after a timeout."""
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.02)
    assert await ask(server, b"GET /pa") == b""
    assert not server.connections


async def test_response_to_a_client_that_does_not_read_times_out(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response has a timeout of its own."""
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*server.address, limit=1024)
    writer.write(b"GET /large HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        while not server.connections:
            await asyncio.sleep(0)
        while server.connections:
            await asyncio.sleep(0)
    # The bytes in the socket buffers can still be read; the rest never arrives.
    received = 0
    with suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            while piece := await reader.read(1 << 20):
                received += len(piece)
    assert received < sum(map(len, BODY))
    writer.close()


async def connected(server: HttpServer, count: int) -> list[asyncio.StreamWriter]:
    """Open connections, each with half a request."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET /pa")
        writers.append(writer)
    return writers


@pytest.mark.parametrize("name", ["CONNECTIONS_MAX", "ADDRESS_CONNECTIONS_MAX"])
async def test_half_requests_do_not_keep_others_out(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The oldest idle connection is closed for a new one."""
    monkeypatch.setattr(http, name, 3)
    writers = await connected(server, 3)
    async with asyncio.timeout(5):
        while len(server.connections) < 3:
            await asyncio.sleep(0)
    oldest, *others = server.connections
    assert (await ask(server, b"GET /page HTTP/1.1\r\n\r\n")).endswith(b"hello\n")
    assert oldest not in server.connections
    assert set(others) <= set(server.connections)
    for writer in writers:
        writer.close()
    closing = [writer.wait_closed() for writer in writers]
    await asyncio.gather(*closing, return_exceptions=True)


async def test_connections_have_a_limit(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all connections wait for their responses, a new one is refused."""
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)
    reader, writer = await asyncio.open_connection(*server.address, limit=1024)
    writer.write(b"GET /large HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        while not any(not connection.is_idle for connection in server.connections):
            await asyncio.sleep(0)
    assert await ask(server, b"GET /page HTTP/1.1\r\n\r\n") == b""
    async with asyncio.timeout(5):
        while await reader.read(1 << 20):
            continue
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        while server.connections:
            await asyncio.sleep(0)
    assert (await ask(server, b"GET /page HTTP/1.1\r\n\r\n")).endswith(b"hello\n")


async def test_reset_connection_ends_without_a_failure(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that is gone when its response has been written is no failure of the broker."""

    def refuse(_: object) -> None:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    reader, writer = await asyncio.open_connection(*server.address)
    while not server.connections:
        await asyncio.sleep(0)
    (connection,) = server.connections
    transport = connection._transport
    monkeypatch.setattr(type(transport), "write_eof", refuse)
    connection.buffer_updated(_put(connection, b"GET /page HTTP/1.1\r\n\r\n"))
    while server.connections:
        await asyncio.sleep(0)
    assert not server.tasks.failures
    assert transport.is_closing()
    writer.close()
    await asyncio.gather(reader.read(), writer.wait_closed(), return_exceptions=True)


def _put(connection: http.HttpConnection, data: bytes) -> int:
    """Write bytes where the transport would, and return how many there are."""
    connection.get_buffer(-1)[: len(data)] = data
    return len(data)


async def test_page_that_fails_closes_the_connection(server: HttpServer) -> None:
    """The client does not wait for the response; the next request has one."""
    assert await ask(server, b"GET /broken HTTP/1.1\r\n\r\n") == b""
    assert b"200 OK" in await ask(server, b"GET /page HTTP/1.1\r\n\r\n")

"""The metrics port answers HTTP, and bears everything else."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from ottla.base.tasks import Tasks
from ottla.net.listener import RealNet
from ottla.server.monitoring import http
from ottla.server.monitoring.http import Answer, HttpServer

# More than the buffers of two sockets hold.
BODY = [b"x" * 10_000] * 2000


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    """A server of one short and one long page."""
    tasks = Tasks()

    async def page() -> Answer:
        return Answer(200, "text/plain", [b"hello\n"])

    async def large() -> Answer:
        return Answer(200, "text/plain", list(BODY))

    running = HttpServer({"/page": page, "/large": large}, tasks)
    await running.open(RealNet(), "127.0.0.1", 0)
    yield running
    await running.close()
    await tasks.close()


async def ask(server: HttpServer, *pieces: bytes) -> bytes:
    """Send the pieces one by one and return all that comes back."""
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
    """Whatever the headers say."""
    answer = await ask(server, request_line + b"\r\nHost: x\r\nAccept: */*\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert b"Connection: close\r\n" in answer
    is_page = status == b"200 OK" and request_line.startswith(b"GET")
    assert answer.endswith(b"\r\n\r\nhello\n") == is_page


async def test_a_request_may_come_in_pieces(server: HttpServer) -> None:
    """Byte by byte."""
    request = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = await ask(server, *(request[at : at + 1] for at in range(len(request))))
    assert answer.endswith(b"hello\n")


async def test_a_large_page_comes_whole(server: HttpServer) -> None:
    """As fast as the reader takes it."""
    answer = await ask(server, b"GET /large HTTP/1.1\r\n\r\n")
    assert answer.partition(b"\r\n\r\n")[2] == b"".join(BODY)


async def test_a_kafka_client_is_told_at_once(server: HttpServer) -> None:
    """Instead of waiting for a line that never comes."""
    answer = await ask(server, b"\0\0\0\x14\0\x12\0\0\0\0\0\1\0\4test")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"it uses HTTP" in answer


async def test_headers_without_end_are_refused(server: HttpServer) -> None:
    """Nobody makes the server keep more than 16 KiB."""
    answer = await ask(server, b"GET /page HTTP/1.1\r\n", b"X: " + b"y" * 20_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_garbage_does_no_harm(server: HttpServer) -> None:
    """A thousand kinds of it: each connection ends, and the next request is answered."""
    chance = random.Random(11)
    for _ in range(300):
        size = chance.choice((1, 5, 100, 5000))
        await ask_and_leave(server, chance.randbytes(size))
    assert (await ask(server, b"GET /page HTTP/1.1\r\n\r\n")).endswith(b"hello\n")


async def ask_and_leave(server: HttpServer, data: bytes) -> None:
    """Send and go, without reading."""
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(data)
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_whoever_sends_nothing_is_not_waited_for(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection without a request ends by itself."""
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.02)
    assert await ask(server, b"GET /pa") == b""
    assert server.connections == set()


async def test_a_reader_that_takes_nothing_is_not_waited_for(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has a time limit of its own."""
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*server.address, limit=1024)
    writer.write(b"GET /large HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        while not server.connections:
            await asyncio.sleep(0)
        while server.connections:
            await asyncio.sleep(0)
    # What the sockets had taken is still to be read; the rest never comes.
    received = 0
    with suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            while piece := await reader.read(1 << 20):
                received += len(piece)
    assert received < sum(map(len, BODY))
    writer.close()


async def test_connections_have_a_limit(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than that are turned away, and those that are there are served."""
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)
    _, writer = await asyncio.open_connection(*server.address)
    async with asyncio.timeout(5):
        while not server.connections:
            await asyncio.sleep(0)
    assert await ask(server, b"GET /page HTTP/1.1\r\n\r\n") == b""
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(5):
        while server.connections:
            await asyncio.sleep(0)
    assert (await ask(server, b"GET /page HTTP/1.1\r\n\r\n")).endswith(b"hello\n")

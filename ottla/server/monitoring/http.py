"""A minimal HTTP server on the Net port: GET and HEAD of a few paths, one request per connection.

Prometheus, curl, browsers and load balancers need no more. Only the first line of a request (its
path and the parameters of its query) and its Host header are evaluated. Bytes that
are not a request get a 400, and the connection is closed. Every limit is finite.

A connection that has not sent its request, or has its response, is idle. If there are too many
connections, of all addresses or of one, a new one takes the place of the oldest idle one: half
requests cannot keep others out.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import NamedTuple, cast
from urllib.parse import parse_qsl, unquote

from ottla.base.errors import ConfigError
from ottla.base.tasks import Tasks
from ottla.net import port
from ottla.net.transports import LOST

REQUEST_BYTES_MAX = 16 * 1024
CONNECTIONS_MAX = 64
# Of one address, so that it cannot use up the others' with requests that take long.
ADDRESS_CONNECTIONS_MAX = 16
REQUEST_SECONDS = 10.0
# Seconds from the request to the last byte of the response.
ANSWER_SECONDS = 60.0
# Seconds from the last byte of the response to the closing of the connection.
LINGER_SECONDS = 2.0
_PIECE_BYTES = 64 * 1024
_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Request(NamedTuple):
    """The evaluated parts of a request; `host` is None without a Host header.

    `parameters` are the query's parameters; the last one of a name wins.
    """

    path: str
    parameters: Mapping[str, str]
    query: str
    host: str | None


class HttpResponse(NamedTuple):
    """The response of a path; the body is produced in pieces."""

    status: int
    content_type: str
    pieces: list[bytes]


class Stream(NamedTuple):
    """A response whose length is not known: it ends when the connection closes.

    If the peer closes the connection, the generator is closed.
    """

    content_type: str
    pieces: AsyncGenerator[bytes, None]


Page = Callable[[Request], Awaitable[HttpResponse | Stream]]
# By path; a path that ends with "/" serves all paths below it.
Pages = Mapping[str, Page]


def plain(status: int, text: str) -> HttpResponse:
    """Return a short response in plain text."""
    return HttpResponse(status, "text/plain; charset=utf-8", [text.encode() + b"\n"])


def _request(target: str, head: list[bytes]) -> Request:
    path, _, query = target.partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True, encoding="utf-8"))
    return Request(unquote(path), parameters, query, _host(head))


class HttpServer:
    """Listens from `open` to `close` on one event loop."""

    def __init__(
        self, pages: Pages, tasks: Tasks, is_own_name: Callable[[str], bool] = lambda _: True
    ) -> None:
        self.pages = pages
        self.tasks = tasks
        # In the order of their arrival.
        self.connections: dict[HttpConnection, None] = {}
        # Returns True if a Host header has a name of this server.
        self._is_own_name = is_own_name
        self._listener: port.Listener | None = None

    async def open(self, net: port.Net, host: str, port_number: int) -> None:
        """Listen; raises ConfigError if that fails."""
        try:
            self._listener = await net.listen(host, port_number, lambda: HttpConnection(self))
        except OSError as error:
            raise ConfigError(
                f"Cannot listen on {host}:{port_number} for metrics: {error.strerror or error}. "
                f"{port.remedy(error, 'choose another port (metrics.listener, --metrics-port)')}."
            ) from error

    @property
    def address(self) -> tuple[str, int]:
        """The host and port it listens on."""
        assert self._listener is not None, "it has not been opened"
        return self._listener.host, self._listener.port

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.close()
        for connection in list(self.connections):
            connection.abort()

    def admit(self, connection: "HttpConnection") -> bool:
        """Add a connection, in place of the oldest idle one if there are too many."""
        same = [other for other in self.connections if other.peer == connection.peer]
        for group, most in (
            (same, ADDRESS_CONNECTIONS_MAX),
            (list(self.connections), CONNECTIONS_MAX),
        ):
            if len(group) >= most:
                idle = next((other for other in group if other.is_idle), None)
                if idle is None:
                    return False
                self.forget(idle)
                idle.abort()
        self.connections[connection] = None
        return True

    def forget(self, connection: "HttpConnection") -> None:
        """Remove a connection."""
        self.connections.pop(connection, None)

    async def answer(self, head: list[bytes]) -> tuple[HttpResponse | Stream, bool]:
        """Return the response to a request, and whether its body is to be sent."""
        request_line = head[0].split() if head else []
        if len(request_line) != 3 or not request_line[2].startswith(b"HTTP/1."):
            return plain(400, "This is the metrics port; it uses HTTP."), True
        method, request = request_line[0], _request(request_line[1].decode("latin-1"), head)
        if request.host is not None and not self._is_own_name(request.host):
            reason = (
                f"The host {request.host!r} is not a name of this broker: use its address, or add"
            )
            return plain(403, f"{reason} the name to metrics.allowed.hosts."), method == b"GET"
        if method not in (b"GET", b"HEAD"):
            return plain(405, "Only GET and HEAD are supported."), True
        page = self.pages.get(request.path) or self._page_above(request.path)
        if page is None:
            paths = ", ".join(sorted(self.pages))
            return plain(404, f"Page not found; available pages: {paths}"), method == b"GET"
        return await page(request), method == b"GET"

    def _page_above(self, path: str) -> Page | None:
        """Return the page that serves the paths below it; None if no page does."""
        folders = [name for name in self.pages if name.endswith("/") and path.startswith(name)]
        return self.pages[max(folders, key=len)] if folders else None


def _host(head: list[bytes]) -> str | None:
    """Return the value of the Host header."""
    for line in head[1:]:
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"host":
            return value.strip().decode("latin-1")
    return None


class HttpConnection(asyncio.BufferedProtocol):
    """Reads one request, writes one response, closes."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport = cast(asyncio.Transport, None)
        self._buffer = bytearray(REQUEST_BYTES_MAX)
        self._filled = 0
        self._is_answering = self._is_sent = self._has_peer_ended = False
        self._may_write: asyncio.Event = asyncio.Event()
        self._may_write.set()
        self._timer: asyncio.TimerHandle | None = None
        self._streaming: asyncio.Task[None] | None = None
        self.peer = ""

    @property
    def is_idle(self) -> bool:
        """True before the request is complete, and after the response was sent."""
        return self._is_sent or not self._is_answering

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, with a timeout."""
        self._transport = cast(asyncio.Transport, transport)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._server.admit(self):
            self._transport.abort()
            return
        self._end_after(REQUEST_SECONDS)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return room for the rest of the request; further bytes are read and dropped."""
        if self._is_answering or self._filled >= len(self._buffer):
            self._filled = 0
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Respond as soon as the head of the request is complete."""
        if self._is_answering:
            return
        self._filled += nbytes
        head = bytes(self._buffer[: self._filled])
        end = head.find(b"\r\n\r\n")
        if end < 0 and b"\n\n" not in head and self._filled < REQUEST_BYTES_MAX:
            # A client of another protocol would wait for a response, because it sends no lines.
            if not head[:8].decode("latin-1").rstrip("\r\n").isprintable():
                self._start([])
            return
        if end < 0 and self._filled >= REQUEST_BYTES_MAX:
            self._start_with(plain(431, "The request is too large."))
            return
        self._start(head.splitlines())

    def eof_received(self) -> bool:
        """Continue to respond to a peer that has only stopped sending; but this cancels a stream."""
        self._has_peer_ended = True
        return self._is_answering and not self._is_sent and self._streaming is None

    def pause_writing(self) -> None:
        """Wait for the peer to read."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Resume sending."""
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the server."""
        self._server.forget(self)
        self._may_write.set()
        if self._streaming is not None:
            self._streaming.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._transport = LOST

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _end_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _start(self, head: list[bytes]) -> None:
        self._is_answering = True
        self._end_after(ANSWER_SECONDS)
        self._server.tasks.spawn(self._answer(head), "response of the metrics port")

    def _start_with(self, response: HttpResponse) -> None:
        self._is_answering = True
        self._end_after(ANSWER_SECONDS)
        self._server.tasks.spawn(
            self._send(response, with_body=True), "response of the metrics port"
        )

    async def _answer(self, head: list[bytes]) -> None:
        response = None
        try:
            response, with_body = await self._server.answer(head)
        finally:
            # Otherwise the peer would wait for the response of a request that has failed.
            if response is None:
                self.abort()
        if isinstance(response, HttpResponse):
            await self._send(response, with_body=with_body)
            return
        async with aclosing(response.pieces) as pieces:
            if not self._transport.is_closing():
                self._streaming = asyncio.current_task()
                await self._send_stream(response.content_type, pieces, with_body=with_body)

    async def _send_stream(
        self, content_type: str, pieces: AsyncGenerator[bytes, None], *, with_body: bool
    ) -> None:
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
            "Connection: close\r\nCache-Control: no-store\r\n\r\n"
        )
        self._transport.write(head.encode())
        if with_body:
            async for piece in pieces:
                self._transport.write(piece)
                await self._may_write.wait()
                # The limit is for a peer that does not read, not for a long response.
                self._end_after(ANSWER_SECONDS)
        self._streaming = None
        self._finish()

    async def _send(self, response: HttpResponse, *, with_body: bool) -> None:
        size_bytes = sum(map(len, response.pieces))
        head = (
            f"HTTP/1.1 {response.status} {_REASONS[response.status]}\r\n"
            f"Content-Type: {response.content_type}\r\nContent-Length: {size_bytes}\r\n"
            f"Connection: close\r\nCache-Control: no-store\r\n\r\n"
        )
        waiting = bytearray(head.encode())
        for piece in response.pieces if with_body else ():
            if len(waiting) >= _PIECE_BYTES:
                if self._transport.is_closing():
                    return
                self._transport.write(bytes(waiting))
                waiting.clear()
                await self._may_write.wait()
            waiting += piece
        self._transport.write(bytes(waiting))
        await self._may_write.wait()
        self._finish()

    def _finish(self) -> None:
        """Close when the peer does: bytes that it still sends would reset the connection otherwise."""
        self._is_sent = True
        if self._has_peer_ended or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            try:
                self._transport.write_eof()
            except OSError:
                # The peer has reset the connection, and the transport does not know it yet.
                self.abort()
                return
            self._end_after(LINGER_SECONDS)

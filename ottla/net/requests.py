"""Requests from one broker to another: one connection, pipelined, responses in request order.

A small response costs one system call. The rest of a larger one is received directly into memory
of its own, so that the records of a fetch response are views of it and are not copied again. A
connection has one timer, for the time limit of its oldest requests. The caller chooses the version
of each request: the brokers of a cluster agree on it by configuration, not by negotiation
(inter.broker.protocol.version).
"""

import asyncio
import math
import ssl
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.net.port import Net
from ottla.net.tls import channel_binding
from ottla.net.transports import LOST
from ottla.wire.api_keys import APIS
from ottla.wire.fields import Message
from ottla.wire.headers import decode_response, encode_request_header, encode_request_parts

if TYPE_CHECKING:
    from ottla.wire.pieces import Pieces

_SIZE = struct.Struct(">i")
# A response that is larger comes from a peer that is not a broker.
FRAME_BYTES_MAX = 2**31 - 1 - _SIZE.size
# The default of Kafka's socket.connection.setup.timeout.ms. A longer attempt is not worth waiting
# for, because the system repeats it less and less often.
CONNECT_SECONDS = 10.0
# Responses up to this size are usually received whole, with those that follow.
_SMALL_BYTES = 4096
# A timer of milliseconds may expire a moment before the time that it was set to.
_EARLY_SECONDS = 0.002


Read = Callable[[memoryview], "tuple[int, Any] | None"]
"""Returns the correlation id and the value of a whole response; None if it is for the codec."""


class _Pending(NamedTuple):
    """A request without a response; `response` is the class that decodes it if `read` does not."""

    correlation_id: int
    response: type[Message]
    version: int
    read: Read | None
    future: "asyncio.Future[Any]"
    # On the clock of the event loop.
    expires_at: float


class RequestConnection(asyncio.BufferedProtocol):
    """An established connection; `send` may be called any number of times before a response."""

    def __init__(self, client_id: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._client_id = client_id
        self._transport = cast(asyncio.Transport, None)
        self._pending: deque[_Pending] = deque()
        self._last_id = 0
        # The beginning of the next response, or all of it; then the rest of a larger one.
        self._small = memoryview(bytearray(_SMALL_BYTES))
        self._frame: memoryview | None = None
        self._received = 0
        # Expires with the first of the pending requests, or before.
        self._timer: asyncio.TimerHandle | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the rest of the frame that is being received, or the buffer of small ones."""
        frame = self._frame
        return (self._small if frame is None else frame)[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        """Complete the oldest requests whose responses are whole."""
        self._received += nbytes
        frame = self._frame
        if frame is None:
            self._handle_small()
        elif self._received == len(frame):
            self._frame, self._received = None, 0
            self._complete(frame)

    def _handle_small(self) -> None:
        """Complete the requests whose responses are in the small buffer."""
        small, received, position = self._small, self._received, 0
        while received - position >= _SIZE.size:
            (size_bytes,) = _SIZE.unpack_from(small, position)
            if not 0 < size_bytes <= FRAME_BYTES_MAX or not self._pending:
                # Not a response of a broker, or a response that was not requested.
                self.close()
                return
            start = position + _SIZE.size
            stop = start + size_bytes
            if stop > received:
                if stop - position > len(small):
                    # Larger than the buffer.
                    frame = self._frame = memoryview(bytearray(size_bytes))
                    self._received = received - start
                    frame[: self._received] = small[start:received]
                    return
                break
            # The response is kept, and the buffer is used again.
            self._complete(memoryview(bytearray(small[start:stop])))
            position = stop
            if self.is_lost:
                return
        self._received = received - position
        if position and self._received:
            small[: self._received] = bytes(small[position:received])

    def _complete(self, frame: memoryview) -> None:
        pending = self._pending.popleft()
        try:
            found = None if pending.read is None else pending.read(frame)
            correlation_id, response = found or decode_response(
                pending.response, pending.version, frame
            )
            if correlation_id != pending.correlation_id:
                raise ProtocolError(
                    f"response {correlation_id} instead of {pending.correlation_id}"
                )
        except ProtocolError as error:
            if not pending.future.done():
                pending.future.set_exception(ConnectionAbortedError(str(error)))
            self.close()
            return
        if not pending.future.done():
            pending.future.set_result(response)

    def eof_received(self) -> bool:
        """Close the connection as well."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all pending requests, which are then in doubt."""
        self.is_lost = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._pending:
            future = self._pending.popleft().future
            if not future.done():
                future.set_exception(ConnectionResetError("the broker closed the connection"))
        self._transport = LOST

    def send(
        self,
        message: Message,
        version: int,
        *,
        seconds: float = math.inf,
        pieces: "Pieces | None" = None,
    ) -> "asyncio.Future[Message]":
        """Send a request; the future has its response, or ConnectionError (then it is in doubt).

        Without a response after `seconds` it has TimeoutError, and the connection is closed,
        because responses come in request order. `pieces` are elements that have been encoded
        before; only fields of a fixed size precede them.
        """
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        if pieces is None:
            parts = encode_request_parts(message, version, self._last_id, self._client_id)
        else:
            request, last_id = type(message), self._last_id
            header = encode_request_header(request, version, last_id, self._client_id)
            parts = pieces.parts_after_fixed(message, header)
        return self._send(type(message), version, parts, seconds)

    def send_body(
        self, request: type[Message], version: int, body: bytes, read: Read, *, seconds: float
    ) -> "asyncio.Future[Any]":
        """Send a request that the caller has encoded; `read` is tried before the decoder."""
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        header = encode_request_header(request, version, self._last_id, self._client_id)
        return self._send(request, version, [header, body], seconds, read)

    def _send(
        self,
        request: type[Message],
        version: int,
        parts: list[Buffer],
        seconds: float,
        read: Read | None = None,
    ) -> "asyncio.Future[Any]":
        loop = self._loop
        future: asyncio.Future[Any] = loop.create_future()
        if self.is_lost:
            future.set_exception(ConnectionResetError("the connection is closed"))
            return future
        size_bytes = sum(map(len, parts))
        expires_at = math.inf
        if seconds < math.inf:
            expires_at = loop.time() + seconds
            self._expect(expires_at)
        response = APIS[request.API_KEY].response
        self._pending.append(_Pending(self._last_id, response, version, read, future, expires_at))
        self._transport.writelines([_SIZE.pack(size_bytes), *parts])
        return future

    def _expect(self, expires_at: float) -> None:
        """Have the timer expire at this time, or before."""
        timer = self._timer
        if timer is not None:
            if timer.when() <= expires_at + _EARLY_SECONDS:
                return
            timer.cancel()
        self._timer = self._loop.call_at(expires_at, self._expire)

    def _expire(self) -> None:
        """Close the connection if a request has no response in time."""
        self._timer = None
        first = min((pending.expires_at for pending in self._pending), default=math.inf)
        if first == math.inf:
            return
        now = self._loop.time() + _EARLY_SECONDS
        if first > now:
            self._expect(first)
            return
        for pending in self._pending:
            if pending.expires_at <= now and not pending.future.done():
                pending.future.set_exception(TimeoutError("the broker does not respond"))
        self.close()

    @property
    def channel_binding(self) -> bytes:
        """The value by which both ends know their TLS handshake; empty without TLS."""
        return channel_binding(self._transport)

    def close(self) -> None:
        """Close the connection; pending requests fail."""
        self.is_lost = True
        self._transport.abort()


TlsSource = Callable[[], "ssl.SSLContext | None"]
"""Returns the context of a connection that is established now; None without TLS."""
Introduction = Callable[[RequestConnection], Awaitable[None]]


class RequestChannel:
    """The way to one broker: connects on first use and again after a connection is lost.

    Used from one event loop. It does not retry: the caller knows which requests may be repeated.
    `introduce` is awaited with each new connection before it is used; an OSError of it fails the
    connection.
    """

    def __init__(
        self,
        net: Net,
        host: str,
        port: int,
        *,
        client_id: str,
        introduce: Introduction | None = None,
        tls: TlsSource = lambda: None,
    ) -> None:
        # Returns the context as of now, because certificates are renewed.
        self.tls = tls
        self.host, self.port = host, port
        self._introduce = introduce
        self._net = net
        self._client_id = client_id
        self._connection: RequestConnection | None = None
        self._connecting: asyncio.Future[RequestConnection] | None = None
        # True after `close`.
        self.is_closed = False

    @property
    def is_connected(self) -> bool:
        """True if a connection is established and has not been lost."""
        return self._connection is not None and not self._connection.is_lost

    async def connect(self) -> RequestConnection:
        """Return the connection, which is established first if necessary.

        Raises ConnectionRefusedError if nothing listens, another OSError if the broker cannot be
        reached within 10 s, and ConnectionAbortedError if the channel is closed.
        """
        if self.is_closed:
            raise ConnectionAbortedError("the channel is closed")
        if self._connection is not None and not self._connection.is_lost:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())
            self._connecting.add_done_callback(self._connected)
        # Several callers wait for one connection; the end of one must not cancel it.
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> RequestConnection:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await self._establish()

    async def _establish(self) -> RequestConnection:
        _, connection = await self._net.connect(
            self.host, self.port, lambda: RequestConnection(self._client_id), self.tls()
        )
        established = cast(RequestConnection, connection)
        if self._introduce is not None:
            try:
                await self._introduce(established)
            except BaseException:
                established.close()
                raise
        return established

    def _connected(self, connecting: "asyncio.Future[RequestConnection]") -> None:
        self._connecting = None
        if connecting.cancelled() or connecting.exception() is not None:
            return
        self._connection = connecting.result()
        if self.is_closed:
            self._connection.close()

    async def request(
        self, message: Message, version: int, *, seconds: float, pieces: "Pieces | None" = None
    ) -> Message:
        """Send a request, with `pieces` as in `RequestConnection.send`; return its response.

        Raises OSError if the broker cannot be reached or the connection is lost, and TimeoutError
        (an OSError, too) after `seconds`, which closes the connection because responses come in
        request order. After an error the request may or may not have been performed.
        """
        known = self._connection
        if known is not None and not known.is_lost:
            return await known.send(message, version, seconds=seconds, pieces=pieces)
        try:
            async with asyncio.timeout(seconds):
                connection = await self.connect()
                return await connection.send(message, version, pieces=pieces)
        except TimeoutError:
            self.disconnect()
            raise

    def send_body(
        self, request: type[Message], version: int, body: bytes, read: Read, *, seconds: float
    ) -> "asyncio.Future[Any]":
        """Send a request that the caller has encoded, if a connection is established."""
        assert self._connection is not None
        return self._connection.send_body(request, version, body, read, seconds=seconds)

    def disconnect(self) -> None:
        """Close the connection; the next request establishes another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection, and refuse further requests."""
        self.is_closed = True
        self.disconnect()
        if self._connecting is not None:
            self._connecting.cancel()

"""Requests from one broker to another: one connection, pipelined, responses in request order.

A frame is received directly into memory of its own, so that the records of a fetch response are
views of it and are not copied again. The caller chooses the version of each request: the brokers
of a cluster agree on it by configuration, not by negotiation (inter.broker.protocol.version).
"""

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from ottla.base.errors import ProtocolError
from ottla.net.port import Net
from ottla.net.tls import channel_binding
from ottla.net.transports import LOST
from ottla.wire.api_keys import api_of
from ottla.wire.fields import Message
from ottla.wire.headers import decode_response, encode_request_parts, request_header

if TYPE_CHECKING:
    from ottla.wire.pieces import Pieces

_SIZE = struct.Struct(">i")
# A response that is larger comes from a peer that is not a broker.
FRAME_BYTES_MAX = 2**31 - 1 - _SIZE.size
# The default of Kafka's socket.connection.setup.timeout.ms. A longer attempt is not worth waiting
# for, because the system repeats it less and less often.
CONNECT_SECONDS = 10.0


class _Pending(NamedTuple):
    """A request without a response; `response` is the class that decodes it."""

    correlation_id: int
    response: type[Message]
    version: int
    future: "asyncio.Future[Message]"


class RequestConnection(asyncio.BufferedProtocol):
    """An established connection; `send` may be called any number of times before a response."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._transport = cast(asyncio.Transport, None)
        self._pending: deque[_Pending] = deque()
        self._last_id = 0
        # The frame that is being received: first its size, then its bytes.
        self._size = bytearray(_SIZE.size)
        self._frame: bytearray | None = None
        self._received = 0
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the rest of the frame that is being received."""
        return memoryview(self._frame or self._size)[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        """Complete the oldest request once its response is whole."""
        self._received += nbytes
        if self._received < len(self._frame or self._size):
            return
        self._received = 0
        if self._frame is None:
            self._begin_frame()
            return
        frame, self._frame = self._frame, None
        self._complete(frame)

    def _begin_frame(self) -> None:
        (size_bytes,) = _SIZE.unpack(self._size)
        if 0 < size_bytes <= FRAME_BYTES_MAX and self._pending:
            self._frame = bytearray(size_bytes)
        else:
            # Not a response of a broker, or a response that was not requested.
            self.close()

    def _complete(self, frame: bytearray) -> None:
        pending = self._pending.popleft()
        try:
            correlation_id, response = decode_response(
                pending.response, pending.version, memoryview(frame)
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
        while self._pending:
            future = self._pending.popleft().future
            if not future.done():
                future.set_exception(ConnectionResetError("the broker closed the connection"))
        self._transport = LOST

    def send(
        self, message: Message, version: int, pieces: "Pieces | None" = None
    ) -> "asyncio.Future[Message]":
        """Send a request; the future has its response, or ConnectionError (then it is in doubt).

        `pieces` are elements that have been encoded before; only fields of a fixed size precede
        them.
        """
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.is_lost:
            future.set_exception(ConnectionResetError("the connection is closed"))
            return future
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        if pieces is None:
            parts = encode_request_parts(message, version, self._last_id, self._client_id)
        else:
            header = request_header(message, version, self._last_id, self._client_id)
            parts = pieces.parts_after_fixed(message, header)
        size_bytes = sum(map(len, parts))
        self._pending.append(_Pending(self._last_id, api_of(message).response, version, future))
        self._transport.writelines([_SIZE.pack(size_bytes), *parts])
        return future

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
        try:
            async with asyncio.timeout(seconds):
                connection = await self.connect()
                return await connection.send(message, version, pieces)
        except TimeoutError:
            self.disconnect()
            raise

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

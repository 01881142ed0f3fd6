"""A scripted client of the simulated network: sends requests and receives responses, nothing else.

It uses the wire codec directly, so a test controls every field that is sent. Responses come in
request order. When the connection is lost, all pending requests raise ConnectionError and are in
doubt.
"""

import asyncio
import struct
from collections import deque
from typing import NamedTuple, TypeVar, cast

from ottla.net.port import Net
from ottla.wire.api_keys import api_of
from ottla.wire.fields import Message
from ottla.wire.headers import decode_response, encode_request

M = TypeVar("M", bound=Message)

_SIZE = struct.Struct(">i")


class _Waiting(NamedTuple):
    correlation_id: int
    response: type[Message]
    version: int
    future: "asyncio.Future[Message]"

    def answered(self, frame: bytes) -> None:
        answered_id, response = decode_response(self.response, self.version, frame)
        assert answered_id == self.correlation_id, "responses arrive in the order of the requests"
        if not self.future.done():
            self.future.set_result(response)


class SimConnection(asyncio.BufferedProtocol):
    """One connection to a broker."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._buffer = bytearray(64 * 1024)
        self._received = bytearray()
        self._waiting: deque[_Waiting] = deque()
        self._transport = cast(asyncio.Transport, None)
        self._last_id = 0
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return a buffer for incoming bytes."""
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        """Pass complete responses to the pending requests."""
        self._received += self._buffer[:nbytes]
        while len(self._received) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            response = bytes(self._received[_SIZE.size : end])
            del self._received[:end]
            self._waiting.popleft().answered(response)

    def eof_received(self) -> bool:
        """Close the connection as well."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all pending requests, which are then in doubt."""
        self.is_lost = True
        for waiting in self._waiting:
            if not waiting.future.done():
                waiting.future.set_exception(ConnectionResetError("the broker is gone"))
        self._waiting.clear()

    def send_frame(self, data: bytes) -> None:
        """Send bytes that have no header of a request."""
        self._transport.write(_SIZE.pack(len(data)) + data)

    def send(self, message: Message, version: int) -> "asyncio.Future[Message]":
        """Send a request; the future returns its response, or raises ConnectionError (in doubt)."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        if self.is_lost:
            future.set_exception(ConnectionResetError("the broker is gone"))
            return future
        self._last_id += 1
        frame = encode_request(message, version, self._last_id, self._client_id)
        self._waiting.append(_Waiting(self._last_id, api_of(message).response, version, future))
        self._transport.write(_SIZE.pack(len(frame)) + frame)
        return future

    async def request(self, message: Message, version: int, response: type[M]) -> M:
        """Send a request and return its response; after ConnectionError the request is in doubt."""
        received = await self.send(message, version)
        assert isinstance(received, response)
        return received

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


async def connect(net: Net, host: str, port: int, client_id: str) -> SimConnection:
    """Connect to a broker; raises ConnectionError if it does not listen."""
    _, connection = await net.connect(host, port, lambda: SimConnection(client_id))
    assert isinstance(connection, SimConnection)
    return connection

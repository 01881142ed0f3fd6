"""A transport and an endpoint that tests drive by hand."""

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receiving import nothing_received
from ottla.net.unsent import UnsentBudget


class HandTransport(asyncio.Transport):
    """Records the written bytes; the peer reads when `drain` is called."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 9092), "peername": ("127.0.0.1", 50000)})
        self.sent = b""
        self.writes = 0
        self.unsent = b""
        self.takes_all = True
        self.is_reading_now = True
        self.is_closed = False
        self.connection: Connection | None = None
        self.high = 0

    def write(self, data: Any) -> None:
        self.writes += 1
        if self.takes_all:
            self.sent += bytes(data)
            return
        self.unsent += bytes(data)
        if len(self.unsent) > self.high and self.connection is not None:
            self.connection.pause_writing()

    def drain(self) -> None:
        self.sent += self.unsent
        self.unsent = b""
        assert self.connection is not None
        self.connection.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or 0

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def pause_reading(self) -> None:
        assert self.is_reading_now
        self.is_reading_now = False

    def resume_reading(self) -> None:
        assert not self.is_reading_now
        self.is_reading_now = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


class HandHousehold:
    """An endpoint whose handler is a function of the test."""

    name = "PLAINTEXT"
    is_encrypted = False
    is_gated = False

    def __init__(self, response: Callable[[Connection, bytes], None], limits: Limits) -> None:
        self.buffers = ReceiveBuffers()
        self.budget = ReceiveBudget(1_000_000)
        self.nothing_received = nothing_received(self.buffers, self.budget)
        self.unsent = UnsentBudget(10_000)
        self.limits = limits
        self.handler = self
        self.frames: list[bytes] = []
        self._answer = response

    def frame(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self._answer(connection, bytes(frame))

    def admit(self, connection: Connection) -> bool:
        return True

    def forget(self, connection: Connection) -> None:
        return

    def file_socket(self, transport: asyncio.BaseTransport) -> None:
        """Return None, because the transport has no socket."""


class Wire:
    """A connection with a transport that is driven by hand."""

    def __init__(
        self,
        response: Callable[[Connection, bytes], None],
        limits: Limits | None = None,
        *,
        connection: Connection | None = None,
    ) -> None:
        self.endpoint = HandHousehold(response, limits or Limits())
        self.connection = connection or Connection(self.endpoint)
        self.transport = HandTransport()
        self.transport.connection = self.connection
        self.connection.connection_made(self.transport)

    def receive(self, data: bytes) -> None:
        """Feed bytes as a transport does: as many as the offered buffer takes, while reading."""
        while data and self.transport.is_reading_now and not self.transport.is_closed:
            buffer = self.connection.get_buffer(-1)
            assert len(buffer) > 0
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.connection.buffer_updated(count)
        self.left = data

    def answers(self) -> list[bytes]:
        """Return the frames sent so far."""
        result, data = [], self.transport.sent
        while data:
            (size,) = struct.unpack_from(">i", data)
            result.append(data[4 : 4 + size])
            data = data[4 + size :]
        return result


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def echo() -> Callable[[Connection, bytes], None]:
    """Return a handler that responds with the frame."""
    return lambda connection, body: connection.send([body])


@pytest.fixture
def wire_of() -> type[Wire]:
    return Wire


@pytest.fixture
def framed() -> Callable[[bytes], bytes]:
    return frame

"""A blocking connection that sends requests before earlier responses have arrived.

For bulk transfer in one thread: the fetcher requests the next records before it decodes the current
ones, and the sender has several batches in flight. Responses arrive in the order of the requests,
as the protocol guarantees. Requests are sent by a gathering write; responses are received into one
buffer that is reused.
"""

import struct
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.client.bootstrap import Address
from ottla.client.connection import RESPONSE_BYTES_MAX, Connection
from ottla.client.errors import NotReachable, TimedOut
from ottla.wire import primitives, schema

if TYPE_CHECKING:
    from ottla.client.security.options import Security

M = TypeVar("M", bound=schema.Message)

_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_OBJECTS_MAX = 100 * primitives.OBJECT_BUDGET
# The kernel accepts at most this many parts per call.
_PARTS_MAX = 1024


class PipelinedConnection(Connection):
    """A connection with separate `send` and `receive`. For one thread; any failure closes it."""

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        security: "Security | None" = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._is_encrypted = security is not None and security.tls is not None
        self._expected: deque[tuple[int, int]] = deque()
        self._buffer = bytearray(1 << 16)
        # Last: a failed handshake closes what has been opened.
        super().__init__(address, client_id=client_id, timeout_s=timeout_s, security=security)

    @property
    def in_flight(self) -> int:
        """The number of requests whose responses have not been received."""
        return len(self._expected)

    def send(self, request: schema.Message, *, max_version: int) -> None:
        """Send a request; NotReachable and TimedOut close the connection."""
        if not self._expected:
            self.renew_session(self._timeout_s)
        version = self.version_of(type(request), max_version)
        parts = self._encode(request, version)
        self._send_parts([_LENGTH.pack(sum(map(len, parts))), *parts])
        self._expected.append((self._correlation_id, version))

    def receive(self, response_type: type[M], *, timeout_s: float | None = None) -> M:
        """Return the response to the oldest request; its record fields are valid until the next
        call.
        """
        assert self._expected, "no request is outstanding"
        frame = self._receive_frame(self._timeout_s if timeout_s is None else timeout_s)
        correlation_id, version = self._expected.popleft()
        return self._decode(response_type, version, frame, correlation_id)

    def close(self) -> None:
        """Close the socket and drop all outstanding responses; idempotent."""
        super().close()
        self._expected.clear()

    def _send_parts(self, parts: list[Buffer]) -> None:
        opened = self._opened()
        waiting = deque(memoryview(part) for part in parts)
        try:
            opened.settimeout(self._timeout_s)
            if self._is_encrypted:
                # TLS has no gathering write; one call makes full records of it.
                opened.sendall(b"".join(parts))
                return
            while waiting:
                sent = opened.sendmsg(list(waiting)[:_PARTS_MAX])
                while waiting and sent >= len(waiting[0]):
                    sent -= len(waiting.popleft())
                if sent:
                    waiting[0] = waiting[0][sent:]
        except TimeoutError as error:
            self.close()
            raise TimedOut(f"{self.address} took no request for {self._timeout_s:g} s") from error
        except OSError as error:
            self.close()
            raise NotReachable(f"the connection to {self.address} broke: {error}") from error

    def _receive_frame(self, timeout_s: float) -> memoryview:
        deadline = time.monotonic() + timeout_s
        try:
            (size,) = _LENGTH.unpack(self._receive_exactly(_LENGTH.size, deadline))
            if not 0 < size <= RESPONSE_BYTES_MAX:
                raise ProtocolError(f"{self.address} announces {size} bytes, which cannot be")
            return self._receive_exactly(size, deadline)
        except TimeoutError as error:
            self.close()
            raise TimedOut(f"{self.address} did not answer within {timeout_s:g} s") from error
        except OSError as error:
            self.close()
            raise NotReachable(f"the connection to {self.address} broke: {error}") from error
        except ProtocolError:
            self.close()
            raise

    def _receive_exactly(self, size: int, deadline: float) -> memoryview:
        opened = self._opened()
        if size > len(self._buffer):
            # Larger than needed, so that responses of about the same size do not grow it each time.
            self._buffer = bytearray(size + (size >> 2))
        view = memoryview(self._buffer)[:size]
        received = 0
        while received < size:
            opened.settimeout(max(deadline - time.monotonic(), 0.001))
            count = opened.recv_into(view[received:])
            if count == 0:
                raise ConnectionResetError("the broker closed it before it answered")
            received += count
        return view

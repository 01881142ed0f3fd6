"""One end of a simulated TCP connection, and the pipe to the other end.

Bytes arrive in order and split at any position. Unread bytes of the receiver are bounded, as by
socket buffers. Beyond that limit the sender's transport buffers and pauses its protocol, like
asyncio's transports. Each callback runs in the process that owns that end, so a dead process
receives no calls.
"""

import asyncio
import contextvars
import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from ottla.base.buffers import Buffer, RangeSource

# The capacity of the socket buffers between two ends.
PIPE_BYTES = 128 * 1024
WRITE_BUFFER_HIGH = 64 * 1024

Address = tuple[str, int]


class Link(Protocol):
    """The wire between two hosts, as a pipe sees it."""

    def delay(self) -> float:
        """Draw the seconds until bytes that are sent now arrive."""
        ...

    def cut(self, data: bytes) -> list[bytes]:
        """Return the pieces in which `data` travels."""
        ...

    def hold(self, pipe: "Pipe") -> bool:
        """Return True if the link is cut; it then calls `pipe.go_on` when it is restored."""
        ...

    def note(self, event: str, end: "SimTransport", size_bytes: int) -> None:
        """Record an event."""
        ...


class _Signal:
    """The signals that travel besides bytes."""

    def __init__(self, name: str) -> None:
        self.name = name


FIN = _Signal("fin")
RESET = _Signal("reset")


class Pipe:
    """One direction: bytes and signals on the way to `receiver`, in order."""

    def __init__(self, link: Link, receiver: "SimTransport") -> None:
        self._link = link
        self._receiver = receiver
        self._under_way: deque[bytes | _Signal] = deque()
        # Bytes sent but not read by the receiver yet.
        self.unread_bytes = 0

    @property
    def room_bytes(self) -> int:
        """The bytes that may be sent now."""
        return PIPE_BYTES - self.unread_bytes

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.unread_bytes += len(data)
        for piece in self._link.cut(data):
            self._dispatch(piece)

    def signal(self, signal: _Signal) -> None:
        """Send the end of the stream, or of the connection."""
        if signal is RESET:
            # A reset overtakes nothing, but no bytes before or after it are read any more.
            self._under_way.clear()
        self._dispatch(signal)

    def _dispatch(self, content: bytes | _Signal) -> None:
        self._under_way.append(content)
        self._receiver.later(self._link.delay(), self._arrive)

    def go_on(self) -> None:
        """Deliver everything that was held back."""
        for _ in range(len(self._under_way)):
            self._receiver.later(self._link.delay(), self._arrive)

    def _arrive(self) -> None:
        # One arrival was scheduled for each item, so order does not depend on the timers'.
        if not self._under_way or self._link.hold(self):
            return
        content = self._under_way.popleft()
        if isinstance(content, _Signal):
            self._link.note(content.name, self._receiver, 0)
            self._receiver.signalled(content)
        else:
            self._link.note("bytes", self._receiver, len(content))
            self._receiver.received(content)


def _ignore() -> None:
    pass


class SimTransport(asyncio.Transport):
    """The transport that a protocol receives for its connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context,
        local: Address,
        remote: Address,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self._loop = loop
        self._context = context
        self._protocol: asyncio.BaseProtocol | None = None
        self._outgoing: Pipe | None = None
        self._incoming: Pipe | None = None
        self._received = bytearray()
        self._unsent = bytearray()
        self._high, self._low = WRITE_BUFFER_HIGH, WRITE_BUFFER_HIGH // 4
        self._is_write_paused = False
        self._is_read_paused = False
        self._is_reading_soon = False
        self._has_peer_finished = False
        self._has_finished = False
        self._is_closing = False
        self._is_lost = False
        # Called when the connection has ended at this end.
        self.on_lost: Callable[[], None] = _ignore

    def attach(self, outgoing: Pipe, incoming: Pipe) -> None:
        """Connect the pipes of both directions."""
        self._outgoing, self._incoming = outgoing, incoming

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass the connection to its protocol."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._read_soon()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Run an action later in the process that owns this end."""
        self._loop.call_later(seconds, action, context=self._context)

    def _soon(self, action: Callable[..., object], *arguments: Any) -> None:
        self._loop.call_soon(action, *arguments, context=self._context)

    # -- what arrives ---------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Receive bytes from the wire."""
        if self._is_lost:
            self._send_signal(RESET)
            return
        self._received += data
        self._read_soon()

    def signalled(self, signal: _Signal) -> None:
        """Receive the end of the peer's stream, or of the connection."""
        if self._is_lost:
            return
        if signal is RESET:
            self._received.clear()
            self._unsent.clear()
            self._lose(ConnectionResetError("Connection reset by peer"))
            return
        self._has_peer_finished = True
        self._read_soon()

    def _read_soon(self) -> None:
        if not self._is_reading_soon and self._protocol is not None:
            self._is_reading_soon = True
            self._soon(self._read)

    def _read(self) -> None:
        """Pass received bytes to the protocol, one read per iteration like the real loop."""
        self._is_reading_soon = False
        if self._is_lost or self._is_closing or self._is_read_paused:
            return
        if self._received:
            self._hand_over()
            if self._received or self._has_peer_finished:
                self._read_soon()
        elif self._has_peer_finished:
            self._has_peer_finished = False
            protocol = cast(asyncio.Protocol, self._protocol)
            if not protocol.eof_received():
                self.close()

    def _hand_over(self) -> None:
        protocol = self._protocol
        assert self._incoming is not None
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(cast(bytearray, protocol.get_buffer(-1)))
            assert len(buffer), "get_buffer() returned an empty buffer"
            count = min(len(buffer), len(self._received))
            buffer[:count] = self._received[:count]
            del self._received[:count]
            self._consumed(count)
            protocol.buffer_updated(count)
        else:
            data = bytes(self._received)
            self._received.clear()
            self._consumed(len(data))
            cast(asyncio.Protocol, protocol).data_received(data)

    def _consumed(self, count: int) -> None:
        assert self._incoming is not None
        self._incoming.unread_bytes -= count
        peer = self._peer
        if peer is not None:
            peer._soon(peer.send_more)

    @property
    def _peer(self) -> "SimTransport | None":
        return None if self._outgoing is None else self._outgoing._receiver

    # -- asyncio.Transport: reading -------------------------------------------------------------

    def is_reading(self) -> bool:
        """Return True unless the protocol has paused reading."""
        return not self._is_read_paused and not self._is_closing

    def pause_reading(self) -> None:
        """Leave received bytes in the socket buffer."""
        self._is_read_paused = True

    def resume_reading(self) -> None:
        """Pass on the bytes that have arrived in the meantime."""
        self._is_read_paused = False
        self._read_soon()

    # -- asyncio.Transport: writing -------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits at which the protocol is paused and resumed."""
        if high is None:
            high = WRITE_BUFFER_HIGH if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low and the high limit."""
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the socket has not accepted."""
        return len(self._unsent)

    def write(self, data: Buffer) -> None:
        """Send bytes, or buffer them until the socket accepts them."""
        assert not self._has_finished, "write after write_eof"
        if self._is_lost or self._is_closing:
            return
        self._unsent += data
        self.send_more()
        if len(self._unsent) > self._high and not self._is_write_paused:
            self._is_write_paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    @property
    def room_bytes(self) -> int:
        """The free space in the socket for bytes that bypass the transport."""
        if self._is_lost or self._outgoing is None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        assert not self._unsent, "bytes that were written before would be overtaken"
        return max(0, self._outgoing.room_bytes)

    @property
    def queued_bytes(self) -> int:
        """The bytes that have been sent and not been read."""
        return 0 if self._outgoing is None else self._outgoing.unread_bytes

    def send_at_once(self, data: bytes) -> None:
        """Send bytes that bypass the transport; there must be enough space."""
        if data:
            assert self._outgoing is not None
            self._outgoing.send(data)

    def send_more(self) -> None:
        """Move buffered bytes to the socket as far as it accepts them."""
        if self._is_lost or self._outgoing is None:
            return
        count = min(self._outgoing.room_bytes, len(self._unsent))
        if count > 0:
            data = bytes(self._unsent[:count])
            del self._unsent[:count]
            self._outgoing.send(data)
        if self._is_write_paused and len(self._unsent) <= self._low:
            self._is_write_paused = False
            assert self._protocol is not None
            self._protocol.resume_writing()
        if not self._unsent and (self._is_closing or self._has_finished):
            self._finish()

    def can_write_eof(self) -> bool:
        """Return True: TCP can be closed in one direction."""
        return True

    def write_eof(self) -> None:
        """Close this direction after all bytes are sent."""
        self._has_finished = True
        self.send_more()

    # -- the end --------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Return True if the connection is closed or closing."""
        return self._is_closing or self._is_lost

    def close(self) -> None:
        """Stop reading, send the buffered bytes, then close."""
        if not self._is_closing and not self._is_lost:
            self._is_closing = True
            self.send_more()

    def abort(self) -> None:
        """Close immediately; the peer sees a reset."""
        if not self._is_lost:
            self._unsent.clear()
            self._send_signal(RESET)
            self._lose(None)

    def vanish(self) -> None:
        """End without any signal to the peer: the power is off, or the process is dead."""
        self._is_lost = True
        self._unsent.clear()

    def reset(self) -> None:
        """Reset the connection for both ends, as when a device between them drops it."""
        self._send_signal(RESET)
        self.signalled(RESET)

    def _send_signal(self, signal: _Signal) -> None:
        if self._outgoing is not None:
            self._outgoing.signal(signal)

    def _finish(self) -> None:
        """End the stream after all bytes are sent, and the connection if it is closing."""
        if not self._is_closing:
            self._send_signal(FIN)
            return
        # Closing a socket with unread bytes sends a reset.
        self._send_signal(RESET if self._received else FIN)
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self.on_lost()
        self.on_lost = _ignore
        protocol = self._protocol
        if protocol is not None:
            self._soon(protocol.connection_lost, error)


class SimFileSocket:
    """The socket below a simulated transport (implements FileSocket)."""

    def __init__(self, transport: SimTransport) -> None:
        self._transport = transport

    def send(self, parts: Sequence[Buffer], *, has_more: bool) -> int:
        """Send as many bytes as the socket accepts."""
        piece = b"".join(parts)[: self._transport.room_bytes]
        self._transport.send_at_once(piece)
        return len(piece)

    def send_file(self, source: RangeSource, position: int, size_bytes: int) -> int:
        """Send as many bytes of the file as the socket accepts, with its content of this moment."""
        sendable = min(size_bytes, self._transport.room_bytes)
        piece = source.read_at(position, sendable) if sendable else b""
        self._transport.send_at_once(piece)
        return len(piece)

    def queued_bytes(self) -> int:
        """Return the number of bytes that the peer has not read."""
        return self._transport.queued_bytes

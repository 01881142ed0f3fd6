"""One connection: bytes to frames, responses in request order, both under finite limits.

Independent of APIs: it passes each whole frame to a `FrameHandler` inside the transport's read
callback and joins all responses of one read into one write (docs: hot path). A handler that cannot
respond at once calls `defer`; the response keeps its position. Unless the handler allows reading
ahead, the connection handles no further request until that response is sent, as Kafka mutes a
channel, so requests of one connection take effect in order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from ottla.base.buffers import Part
from ottla.base.errors import ProtocolError
from ottla.base.logs import provoked_logger
from ottla.net.buffers import ReceiveBuffers
from ottla.net.limits import Limits
from ottla.net.muting import NEVER_MUTED, Mute
from ottla.net.port import FileSocket
from ottla.net.receive_budget import ReceiveBudget, ReceiveMemory
from ottla.net.receiving import PREFIX_BYTES, SIZE, UnhandledBytes, impossible_size
from ottla.net.sending import SendHalf, memory_bytes
from ottla.net.transports import LOST
from ottla.net.unsent import UnsentBudget

_log = provoked_logger(__name__)

_NO_ADDRESS = ("", 0)
_NO_TRANSPORT = cast(asyncio.Transport, None)


def _not_serving(connection: "Connection", frame: memoryview) -> None:
    raise AssertionError("a connection handles no frame before its endpoint serves requests")


class FrameHandler(Protocol):
    """The handler of the requests of an endpoint's connections."""

    def frame(self, connection: "Connection", frame: memoryview) -> None:
        """Handle one frame (without its size prefix).

        Calls `connection.send` or `connection.defer` exactly once, or neither if the request has no
        response. The frame is writable and its memory is reused when this returns. ProtocolError
        closes the connection.
        """
        ...


class EndpointState(Protocol):
    """The state shared by the connections of one endpoint (`ottla.net.endpoint.Endpoint`)."""

    buffers: ReceiveBuffers
    # Bytes of requests, and bytes of responses that peers have not received.
    budget: ReceiveBudget
    unsent: UnsentBudget
    # Shared by all connections that have never had unhandled bytes.
    nothing_received: UnhandledBytes
    limits: Limits
    # True if the connections have TLS.
    is_encrypted: bool
    # True if clients are not known until their connections are passed to another handler.
    is_gated: bool
    # None until the endpoint serves requests.
    handler: FrameHandler | None
    name: str

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection, or close it."""
        ...

    def forget(self, connection: "Connection") -> None:
        """Remove a lost connection from the count."""
        ...

    def file_socket(self, transport: asyncio.BaseTransport) -> FileSocket | None:
        """Return the means to send files through a transport; None if it cannot send files."""
        ...


class Reply:
    """A deferred response; sent at most once, by any code, at any time."""

    __slots__ = ("_connection", "held_bytes", "is_blocking", "on_abandon", "parts")

    def __init__(self, connection: "Connection", is_blocking: bool, held_bytes: int) -> None:
        self._connection = connection
        self.is_blocking = is_blocking
        self.held_bytes = held_bytes
        self.parts: Sequence[Part] | None = None
        # Called if the connection is lost before the response was sent.
        self.on_abandon: Callable[[], Any] | None = None

    def send(self, parts: Sequence[Part]) -> None:
        """Set the response (without size prefix); dropped if the connection is closed."""
        assert self.parts is None, "a request can only have one response"
        self.parts = parts
        connection = self._connection
        if connection.is_next(self):
            connection.replied()
        elif not connection.is_closed:
            connection.delay(parts)

    def send_nothing(self) -> None:
        """Complete the request without a response."""
        self.send(())

    def close(self, reason: str) -> None:
        """Close the connection instead of responding."""
        self._connection.close(reason)

    def abandon(self) -> None:
        """Release the held memory: the connection was lost before the response was sent."""
        if self.held_bytes:
            self._connection.budget.give_back(self.held_bytes)
        on_abandon, self.on_abandon = self.on_abandon, None
        if self.parts is None and on_abandon is not None:
            on_abandon()


class Connection(SendHalf):
    """Lives on one event loop, from `connection_made` to `connection_lost`.

    Composed of its send half, its unhandled bytes (`receiving`) and its mute (`muting`).

    Invariant: while the connection is blocked, received bytes stay in the private buffer; the
    transport is paused as soon as that contains a whole frame. While the connection is muted, the
    transport is paused.
    """

    __slots__ = (
        *("_blocking_count", "_endpoint", "_frame_bytes_max", "_handle", "_is_draining"),
        *("_is_gated", "_is_parsing", "_is_reading", "_mute", "_pending", "_shared", "_time"),
        *("_unsent_bytes_high", "budget", "connected_at", "frames_count", "identity"),
        *("known_sender", "listener_name", "local_address", "memo", "received"),
    )

    def __init__(self, endpoint: EndpointState) -> None:
        super().__init__(endpoint)
        self._endpoint = endpoint
        self.budget = endpoint.budget
        self._shared = endpoint.buffers.shared
        self._handle = _not_serving
        self._frame_bytes_max = endpoint.limits.frame_bytes_max
        self._unsent_bytes_high = endpoint.limits.unsent_bytes_high
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._transport: asyncio.Transport = _NO_TRANSPORT
        self.received = endpoint.nothing_received
        self.listener_name = endpoint.name
        # The handler's own state, kept from one frame to the next.
        self.memo: Any = None
        # How the peer has proven its identity; None if it has not. The handlers' own state, too.
        self.identity: Any = None
        # The peer as the authorizer knows it; None without one. The handlers' own state, too.
        self.known_sender: Any = None
        self.local_address: tuple[str, int] = ("", 0)
        self.peer_address: tuple[str, int] = ("", 0)
        self.connected_at = self.active_at = self._time()
        self.frames_count = 0
        self._is_gated = endpoint.is_gated
        self._is_draining = False
        self._pending: deque[Reply] = deque()
        self._blocking_count = 0
        self._is_parsing = False
        self._is_reading = False
        self._mute = NEVER_MUTED

    # -- asyncio.BufferedProtocol ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register with the endpoint, or close at once if it is full."""
        self._transport = cast(asyncio.Transport, transport)
        peer_address = transport.get_extra_info("peername")
        self.local_address = (transport.get_extra_info("sockname") or _NO_ADDRESS)[:2]
        self.peer_address = (peer_address or _NO_ADDRESS)[:2]
        self._watch_sending()
        endpoint = self._endpoint
        is_admitted = endpoint.admit(self)
        # uvloop starts to read after this method even if it is paused: only frames are held back.
        self._is_reading = True
        if endpoint.handler is not None:
            self._handle = endpoint.handler.frame
        self._takes_requests = endpoint.handler is not None and self._mute.timer is None
        if peer_address is None or self.is_closed:
            # The peer or `abort` has closed it before it was accepted; there may be no address.
            self.abort()
        elif not is_admitted:
            refuse = self.dismiss if endpoint.is_encrypted else self.close
            refuse("too many connections")

    @property
    def pending_count(self) -> int:
        """The number of requests whose response is not complete, or is behind such a one."""
        return len(self._pending)

    def serve(self, handler: FrameHandler) -> None:
        """Start to handle requests: the broker is ready."""
        self._handle = handler.frame
        self._takes_requests = self._peer_reads and not self.is_muted
        self._go_on()

    def pass_to(self, handler: FrameHandler, frame_bytes_max: int) -> None:
        """Have further frames handled by another handler; for a frame handler, within a frame."""
        self._handle = handler.frame
        self._is_gated = False
        self._frame_bytes_max = frame_bytes_max
        if self.received is not self._endpoint.nothing_received:
            self.received.frame_bytes_max = frame_bytes_max

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the shared buffer, or the missing rest of a frame."""
        budget = self.budget
        if self.received.filled or budget.held_bytes >= budget.host_bytes_max:
            # An address holds at most `host_bytes_max`, so it may hold too much from here on.
            return self.received.free_room(self.peer_address[0])
        return self._shared

    def buffer_updated(self, nbytes: int) -> None:
        """Handle every frame that is complete."""
        self.active_at = self._time()
        try:
            if self.received.filled:
                self._continue_frame(nbytes)
            else:
                position = self._handle_frames(self._shared, nbytes)
                if position < nbytes and not self.is_closed:
                    self._keep(self._shared, position, nbytes, may_wait=True)
        except ProtocolError as error:
            self.close(str(error))
            return
        if self._out:
            self._flush()

    def eof_received(self) -> bool:
        """Close: a peer that half-closes wants no more responses."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything; deferred responses are dropped."""
        self.is_closed = True
        if self.is_muted:
            self._mute.end()
        endpoint = self._endpoint
        if self.received is not endpoint.nothing_received:
            self.received.forget()
        self._sending_lost()
        while self._pending:
            self._pending.popleft().abandon()
        endpoint.forget(self)
        self._transport = LOST

    def _continue_sending(self) -> None:
        self.active_at = max(self._time(), self._mute.until)
        if self._queue:
            self._send_queue()
        if self._queue or not self._peer_reads:
            return
        self._takes_requests = not self.is_muted
        self._hold_unsent()
        self._go_on()

    # -- answers --------------------------------------------------------------------------------

    def send(self, parts: Sequence[Part]) -> None:
        """Respond to the frame being handled; `parts` are sent when the read callback ends."""
        if self._pending:
            reply = Reply(self, False, 0)
            reply.parts = parts
            self._pending.append(reply)
            self.delay(parts)
            return
        self._enqueue(parts)
        if not self._is_parsing:
            self._flush()

    def send_framed(self, response: bytes) -> None:
        """Respond to the frame being handled with one small part that begins with its size."""
        if self._pending or not self._is_parsing:
            self.send((response[PREFIX_BYTES:],))
            return
        self._out.append(response)
        self._out_bytes += len(response)

    def defer(self, *, is_blocking: bool = True, held_bytes: int = 0) -> Reply:
        """Reserve the position of a response; a blocking one delays the requests after it.

        `held_bytes` is the memory held until the response, counted in the budget of all
        connections.
        """
        reply = Reply(self, is_blocking, held_bytes)
        if held_bytes:
            self.budget.hold(held_bytes)
        self._pending.append(reply)
        self._blocking_count += is_blocking
        return reply

    def is_next(self, reply: Reply) -> bool:
        """Return True if no earlier response is missing."""
        return bool(self._pending) and self._pending[0] is reply

    def replied(self) -> None:
        """Send the deferred responses that are complete and first in line (called by Reply)."""
        if self.is_closed:
            return
        pending, waiting_bytes = self._pending, self._waiting_bytes
        while pending and pending[0].parts is not None:
            reply = pending.popleft()
            assert reply.parts is not None
            self._blocking_count -= reply.is_blocking
            if reply.held_bytes:
                self.budget.give_back(reply.held_bytes)
            if reply.parts:
                self._enqueue(reply.parts)
        if not self._is_parsing:
            self._flush()
        if waiting_bytes:
            self._waiting_bytes = sum(memory_bytes(reply.parts or ()) for reply in pending)
            self._hold_unsent()
        if not self._is_parsing:
            self._go_on()

    # -- requests -------------------------------------------------------------------------------

    def _is_blocked(self) -> bool:
        return (
            self._blocking_count > 0
            or not self._takes_requests
            or self.is_closed
            or self._out_bytes + self._waiting_bytes > self._unsent_bytes_high
            or len(self._pending) >= self._endpoint.limits.pending_max
        )

    def _handle_frames(self, view: memoryview, end: int) -> int:
        """Handle whole frames in order; return the position of the first incomplete one."""
        position = count = 0
        handle, unpack = self._handle, SIZE.unpack_from
        size_max, out_max = self._frame_bytes_max, self._unsent_bytes_high
        self._is_parsing = True
        try:
            while end - position >= PREFIX_BYTES:
                (size_bytes,) = unpack(view, position)
                if not 0 < size_bytes <= size_max:
                    raise impossible_size(size_bytes, size_max)
                start = position + PREFIX_BYTES
                stop = start + size_bytes
                if stop > end:
                    break
                if (
                    self._pending or self._out_bytes > out_max or not self._takes_requests
                ) and self._is_blocked_still():
                    break
                handle(self, view[start:stop])
                count += 1
                position = stop
                if self.is_closed or self._is_draining:
                    break
        finally:
            self._is_parsing = False
            self.frames_count += count
        return position

    def _is_blocked_still(self) -> bool:
        """Return True if still blocked after all responses were written to the socket."""
        if not self._is_blocked():
            return False
        self._flush()
        return self._is_blocked()

    # -- unhandled bytes ------------------------------------------------------------------------

    def _keep(self, view: memoryview, position: int, end: int, *, may_wait: bool = False) -> None:
        """Keep unhandled bytes of `view`; stop reading if they must wait."""
        endpoint = self._endpoint
        if self.received is endpoint.nothing_received:
            memory = ReceiveMemory(self.budget, self.peer_address[0], self._memory_granted)
            self.received = self.received.of_connection(memory, self._frame_bytes_max)
        if not self.received.keep(view, position, end, self.active_at, may_wait=may_wait):
            self._pause()

    def _continue_frame(self, nbytes: int) -> None:
        """Handle more bytes of the frame whose beginning was received before."""
        received = self.received
        if received.private is None:
            self._continue_rest(nbytes)
        elif not received.add(nbytes, self.active_at):
            self._pause()
        elif received.has_frame:
            self._handle_private()

    def _continue_rest(self, nbytes: int) -> None:
        """Handle the small frame that has begun before, and the frames that follow it."""
        received, view = self.received, self._shared
        started_at = received.frame_started_at
        end = received.put_back() + nbytes
        position = self._handle_frames(view, end)
        if position < end and not self.is_closed:
            self._keep(view, position, end, may_wait=position > 0)
            if not position and received.frame_started_at:
                received.frame_started_at = started_at

    def _handle_private(self) -> None:
        """Handle the frames of the private buffer."""
        received = self.received
        private, view, filled = received.private, received.view, received.filled
        if self._is_blocked():
            received.memory.park()
            self._pause()
            return
        position = self._handle_frames(view, filled)
        if position < filled and not self.is_closed:
            self._keep(view, position, filled)
        elif received.private is private:
            received.drop_private()

    def _memory_granted(self) -> None:
        self.received.enlarge()
        # Time spent waiting for memory is neither idle nor slow.
        waited = max(0.0, self._time() - self.active_at)
        self.connected_at += waited
        self.received.frame_started_at += waited
        self.active_at += waited
        # Not at once: the giver is in the middle of its own work.
        self._loop.call_soon(self._go_on)

    def silent_seconds(self, now: float) -> float:
        """Return for how long (s) an unfinished frame made no progress; 0 if it is not being read."""
        if not self._is_reading:
            return 0.0
        is_established = self.frames_count > 0
        return self.received.silent_seconds(now, self.active_at, is_established=is_established)

    # -- flow -----------------------------------------------------------------------------------

    @property
    def is_stranger(self) -> bool:
        """True until the client is known; without authentication, until its first request is
        complete.
        """
        return self._is_gated or not self.frames_count

    @property
    def is_muted(self) -> bool:
        """True if requests wait because the client has exceeded a quota."""
        return self._mute.timer is not None

    def mute(self, seconds: float) -> None:
        """Handle and read no further request for `seconds`; responses are still sent.

        A connection that is muted already stays muted for the longer of the two times. Time spent
        muted is neither idle nor slow (KIP-219, kafka.network.SocketServer.Processor).
        """
        if self._mute is NEVER_MUTED:
            self._mute = Mute()
        if self.is_closed or not self._mute.extend(self._loop, seconds, self._unmute):
            return
        self.active_at = self._mute.until
        if self.received.frame_started_at:
            self.received.frame_started_at = self._mute.until
        self._takes_requests = False
        self._pause()

    def _unmute(self) -> None:
        self._mute.end()
        is_served = self._handle is not _not_serving
        self._takes_requests = is_served and self._peer_reads and not self._queue
        self._go_on()

    def _pause(self) -> None:
        if self._is_reading and not self.is_closed:
            self._is_reading = False
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """Handle the requests that have waited, then resume reading."""
        received = self.received
        if self.is_closed or self._is_parsing or self._is_draining or received.memory.is_waiting:
            if self._is_draining:
                self._close_if_drained()
            return
        if self._mute.timer is not None:
            return
        if received.filled and received.has_frame:
            try:
                self._handle_private()
            except ProtocolError as error:
                self.close(str(error))
                return
            self._flush()
        # A request that was handled just now may have muted the connection.
        if (
            received.memory.is_waiting
            or self._mute.timer is not None
            or (received.filled and received.has_frame)
        ):
            return
        if not self._is_reading and not self.is_closed:
            self._is_reading = True
            self._transport.resume_reading()

    # -- the end --------------------------------------------------------------------------------

    @property
    def is_waiting_for_answer(self) -> bool:
        """True if a request has been read and has no response yet."""
        return bool(self._pending)

    def drain(self) -> None:
        """Handle no further request; close when every pending response has been sent."""
        if self.is_closed or self._is_draining:
            return
        self._is_draining = True
        self._pause()
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if not self._pending and not self.is_closed:
            self._flush()
            self._close_when_sent()

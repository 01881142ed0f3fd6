"""The send half of a connection: responses in order, with record bytes sent from their file.

Small parts are joined and written to the transport. A `FileRange` is sent from its file to the
socket by `sendfile`, bypassing the transport, so this is done only while the transport has no
unsent bytes. When the socket accepts no more, a few bytes of the range are written to the
transport: it calls `resume_writing` when the socket accepts more. The unsent rest waits in `_queue`
as a range of the file, so a peer that does not read uses no memory for records.

Invariant: nothing is written to the transport while the queue has parts, except by `_send_queue`.
"""

import asyncio
import errno
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from ottla.base.buffers import Buffer, FileRange, Part
from ottla.base.logs import provoked_logger
from ottla.net.port import FileSocket
from ottla.net.tls import channel_binding
from ottla.net.unsent import UnsentBudget

_log = provoked_logger(__name__)

_SIZE = struct.Struct(">i")
# Larger parts are written by themselves: joining them would copy record bytes.
JOIN_BYTES_MAX = 64 * 1024
# Parts of one gathering write, and their bytes: the bytes that the socket rejects are copied.
_PARTS_MAX = 512
_GATHERED_BYTES_MAX = 256 * 1024
# Records of at least this size are sent from their file; smaller ones are cheaper to read.
RANGE_BYTES_MIN = 256 * 1024
# The same if more than half of the memory for unsent bytes is used: a batch of any size would
# otherwise stay in memory for each client that does not read.
RANGE_BYTES_MIN_IF_SCARCE = 4 * 1024
_UNLIMITED = 2**63 - 1
# More bytes than this of responses that wait for an earlier one are counted as unsent.
_UNCOUNTED_BYTES = 4 * 1024
_UNKNOWN = -1
# The most bytes passed to `sendfile` in one call, after a check of the page cache.
_CHUNK_BYTES = 1024 * 1024
# A part of the range that is not in the page cache is read in the background and then written.
_COLD_BYTES = 64 * 1024
# Bytes of a range that are written to the transport, so that it waits for the socket.
_NUDGE_BYTES = 512
# Seconds that a closing connection may take to send its pending responses.
_LINGER_SECONDS = 30.0
# Shared by all connections that have never queued anything: a deque takes 600 bytes.
_EMPTY_QUEUE: deque[Part] = deque()


def forget_warmth(parts: Iterable[Part]) -> None:
    """Have the page cache checked again for parts that are sent later."""
    for part in parts:
        if isinstance(part, FileRange):
            part.is_warm = False


def memory_bytes(parts: Iterable[Part]) -> int:
    """Return how many bytes of a response are in memory."""
    return sum(len(part) for part in parts if not isinstance(part, FileRange))


class ResponseSinks(Protocol):
    """The state shared by the send halves of one endpoint."""

    # Bytes of responses in memory that peers have not received.
    unsent: UnsentBudget
    # True if the connections have TLS.
    is_encrypted: bool

    def file_socket(self, transport: asyncio.BaseTransport) -> FileSocket | None:
        """Return the means to send files through a transport; None if it cannot send files."""
        ...


class SendHalf(asyncio.BufferedProtocol):
    """The base class of `Connection`; see there for the life cycle of a connection."""

    __slots__ = (
        "_cold_read",
        "_file_socket",
        "_linger_timer",
        "_loop",
        "_out",
        "_out_bytes",
        "_peer_reads",
        "_queue",
        "_queued_bytes",
        "_queued_range_bytes",
        "_range_bytes_min",
        "_sent_bytes",
        "_sinks",
        "_takes_requests",
        "_transport",
        "_waiting_bytes",
        "active_at",
        "is_closed",
        "peer_address",
    )

    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop
    peer_address: tuple[str, int]
    active_at: float

    def __init__(self, sinks: ResponseSinks) -> None:
        self._sinks = sinks
        self.is_closed = False
        # The responses to the frames of the current read.
        self._out: list[Part] = []
        self._out_bytes = 0
        # True if the transport has no unsent bytes.
        self._peer_reads = True
        # True if the peer reads its responses and is not muted; a single check for every frame.
        self._takes_requests = True
        # Bytes in memory of responses that wait for an earlier one.
        self._waiting_bytes = 0
        self._file_socket: FileSocket | None = None
        self._range_bytes_min = _UNKNOWN
        # Behind a range that the socket has not taken whole; of the first part, so much is sent.
        self._queue = _EMPTY_QUEUE
        self._sent_bytes = 0
        self._queued_bytes = self._queued_range_bytes = 0
        self._cold_read: asyncio.Future[bytes] | None = None
        self._linger_timer: asyncio.TimerHandle | None = None

    @property
    def range_bytes_min(self) -> int:
        """Records of at least this size should be sent as a FileRange."""
        if self._range_bytes_min == _UNKNOWN:
            self._find_file_socket()
        unsent = self._sinks.unsent
        if 2 * unsent.held_bytes > unsent.limit_bytes and self._file_socket is not None:
            return RANGE_BYTES_MIN_IF_SCARCE
        return self._range_bytes_min

    def _find_file_socket(self) -> None:
        self._file_socket = self._sinks.file_socket(self._transport)
        self._range_bytes_min = _UNLIMITED if self._file_socket is None else RANGE_BYTES_MIN

    @property
    def certificate(self) -> bytes | None:
        """The certificate of the peer in DER; None without one.

        It has been verified if the listener requests certificates.
        """
        tls = self._transport.get_extra_info("ssl_object")
        return None if tls is None else tls.getpeercert(binary_form=True)

    @property
    def channel_binding(self) -> bytes:
        """The value by which both ends know their TLS handshake; empty without TLS."""
        return channel_binding(self._transport)

    # -- answers of one read --------------------------------------------------------------------

    def _enqueue(self, parts: Sequence[Part]) -> None:
        size_bytes = 0
        for part in parts:
            size_bytes += len(part)
        self._out.append(_SIZE.pack(size_bytes))
        self._out.extend(parts)
        self._out_bytes += size_bytes + _SIZE.size

    def _flush(self) -> None:
        if not self._out or self.is_closed:
            return
        out, size_bytes = self._out, self._out_bytes
        self._out, self._out_bytes = [], 0
        if size_bytes <= JOIN_BYTES_MAX and not self._queue:
            # No range is that small.
            self._transport.write(b"".join(out) if len(out) > 1 else out[0])  # type: ignore[arg-type]
            if not self._peer_reads:
                self._hold_unsent()
            return
        if self._queue is _EMPTY_QUEUE:
            self._queue = deque()
        self._queue.extend(out)
        self._queued_bytes += size_bytes
        for part in out:
            if isinstance(part, FileRange):
                self._queued_range_bytes += len(part)
        self._send_queue()
        forget_warmth(self._queue)

    # -- asyncio.BaseProtocol -------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Stop handling requests of a peer that does not read its responses."""
        self._peer_reads = self._takes_requests = False
        self._hold_unsent()

    def resume_writing(self) -> None:
        """Resume: the peer has read its responses."""
        self._peer_reads = True
        self._continue_sending()

    # -- the queue ------------------------------------------------------------------------------

    def _send_queue(self) -> None:
        """Send as much as the socket accepts; the rest keeps further requests waiting."""
        queue = self._queue
        try:
            while queue and self._can_send():
                part = queue[0]
                if not isinstance(part, FileRange):
                    self._send_buffers()
                elif self._send_range(part):
                    queue.popleft()
                    self._sent_bytes = 0
        except OSError as error:
            if error.errno == errno.EIO:
                self._note_failed_read()
            self.drop(f"the response cannot be sent: {error.strerror or error}")
            return
        if queue:
            self._takes_requests = False
        elif self.is_closed and self._linger_timer is not None:
            self._transport.close()
        if queue or not self._peer_reads:
            self._hold_unsent()

    def _can_send(self) -> bool:
        """Return True if the transport has no unsent bytes, so that the order is kept."""
        if self._cold_read is not None or not self._peer_reads:
            return False
        if not self._transport.get_write_buffer_size():
            return True
        # `resume_writing` is called when the transport is empty.
        self._watch_sending()
        return self._peer_reads

    def _watch_sending(self) -> None:
        """Have the transport call `pause_writing` while it has unsent bytes."""
        # A plain transport compares with >, one of TLS with >=.
        self._transport.set_write_buffer_limits(high=int(self._sinks.is_encrypted))

    def _send_buffers(self) -> None:
        """Send the parts before the next range."""
        queue = self._queue
        small: list[Buffer] = []
        size_bytes = 0
        limit_bytes = JOIN_BYTES_MAX if self._file_socket is None else _GATHERED_BYTES_MAX
        while queue and len(small) < _PARTS_MAX:
            part = queue[0]
            if isinstance(part, FileRange):
                break
            if small and size_bytes + len(part) > limit_bytes:
                break
            small.append(part)
            size_bytes += len(part)
            queue.popleft()
        self._queued_bytes -= size_bytes
        if self._file_socket is None:
            self._transport.write(b"".join(small) if len(small) > 1 else small[0])
            return
        # In one packet with the records that follow.
        sent = self._file_socket.send(small, has_more=bool(queue))
        if sent == size_bytes:
            return
        for at, part in enumerate(small):
            if sent < len(part):
                rest = [memoryview(part)[sent:], *small[at + 1 :]]
                self._transport.write(b"".join(rest) if len(rest) > 1 else rest[0])
                return
            sent -= len(part)

    def _send_range(self, records: FileRange) -> bool:
        """Send from the file; return True if all of the range is sent."""
        file_socket = self._file_socket
        assert file_socket is not None, "records are a range only if the transport can send files"
        source, size_bytes = records.source, records.size_bytes
        while self._sent_bytes < size_bytes:
            if records.is_void:
                self.drop("records were truncated while they were sent")
                return False
            position = records.position + self._sent_bytes
            count = min(size_bytes - self._sent_bytes, _CHUNK_BYTES)
            if not (records.is_warm or source.is_cached(position, count)):
                self._read_cold(records, position, min(count, _COLD_BYTES))
                return False
            sent = file_socket.send_file(source, position, count)
            self._count_sent(sent)
            if sent == count:
                continue
            records.is_warm = False
            nudge = source.read_at(position + sent, min(count - sent, _NUDGE_BYTES))
            if not nudge:
                raise OSError(errno.EIO, "the file has become shorter")
            self._count_sent(len(nudge))
            self._transport.write(nudge)
            if not self._peer_reads:
                return self._sent_bytes == size_bytes
        return True

    def _count_sent(self, count: int) -> None:
        self._sent_bytes += count
        self._queued_bytes -= count
        self._queued_range_bytes -= count

    def _read_cold(self, records: FileRange, position: int, size_bytes: int) -> None:
        """Read bytes that are not in the page cache, without blocking the event loop."""
        work = records.source.read_in_background(position, size_bytes)
        self._cold_read = asyncio.ensure_future(work)
        self._cold_read.add_done_callback(self._cold_bytes_read)

    def _cold_bytes_read(self, done: "asyncio.Future[bytes]") -> None:
        self._cold_read = None
        if not self._queue or done.cancelled():
            return
        error = done.exception()
        if error is not None or not done.result():
            self._note_failed_read()
            self.drop(f"the response cannot be read: {error}")
            return
        first = self._queue[0]
        if isinstance(first, FileRange) and first.is_void:
            self.drop("records were truncated while they were sent")
            return
        data = done.result()
        self._count_sent(len(data))
        if self._sent_bytes == len(first):
            self._queue.popleft()
            self._sent_bytes = 0
        self._transport.write(data)
        self._continue_sending()

    def _note_failed_read(self) -> None:
        """Let the next fetch read the records into memory: its response reports the error."""
        part = self._queue[0]
        if isinstance(part, FileRange):
            part.source.note_failure()

    def _continue_sending(self) -> None:
        """Send more of the queue; `Connection` handles requests again when the queue is empty."""
        self._send_queue()

    def drop(self, reason: str) -> None:
        """Close the connection at once: the response that has begun cannot be completed."""
        _log.info("connection closed peer=%s:%s reason=%s", *self.peer_address, reason)
        self._forget_queue()
        self.is_closed = True
        self._sinks.unsent.release(self)
        self._transport.abort()

    def _forget_queue(self) -> None:
        self._queue.clear()
        self._out.clear()
        self._out_bytes = self._sent_bytes = 0
        self._queued_bytes = self._queued_range_bytes = 0

    # -- what is not sent -----------------------------------------------------------------------

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the peer has not received yet, in memory or in files."""
        return self._queued_bytes + self._transport.get_write_buffer_size()

    @property
    def undelivered_bytes(self) -> int:
        """Unsent bytes plus those in the socket's queue; the number falls whenever the peer reads.

        The socket accepts more only when a large part of its queue is free, which with a slow peer
        may take longer than the idle timeout of a connection.
        """
        unsent = self.unsent_bytes
        if not unsent or self._file_socket is None or self.is_closed:
            return unsent
        return unsent + self._file_socket.queued_bytes()

    def _hold_unsent(self) -> None:
        """Count the waiting bytes in the budget of all connections."""
        in_memory = self.unsent_bytes - self._queued_range_bytes + self._waiting_bytes
        self._sinks.unsent.hold_for(self, in_memory)

    def delay(self, parts: Iterable[Part]) -> None:
        """Note that a response has to wait for an earlier one; many small ones are not counted."""
        forget_warmth(parts)
        self._waiting_bytes += memory_bytes(parts)
        if self._waiting_bytes > _UNCOUNTED_BYTES:
            self._hold_unsent()

    def hold_unfinished(self, size_bytes: int) -> None:
        """Count the bytes of a response that is being made; it is the only one that is delayed."""
        if size_bytes > _UNCOUNTED_BYTES:
            self._waiting_bytes = size_bytes
            self._hold_unsent()

    @property
    def answer_room_bytes(self) -> int:
        """Bytes left for records while others are unsent; handlers request less data then.

        Unlimited if the connection sends records from their file, without memory.
        """
        if self._range_bytes_min == _UNKNOWN:
            self._find_file_socket()
        if self._file_socket is not None:
            return _UNLIMITED
        unsent = self._sinks.unsent
        room_bytes = unsent.limit_bytes - unsent.held_bytes
        return room_bytes if room_bytes > 0 else 0

    # -- the end --------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Close the connection because of `reason`, with one log line; try to send the rest."""
        if self.is_closed:
            return
        _log.info("connection closed peer=%s:%s reason=%s", *self.peer_address, reason)
        self._flush()
        if self._queue:
            self._pause()
        self._close_when_sent()

    def dismiss(self, reason: str) -> None:
        """Close the connection at once because of `reason`: the peer is not waited for.

        TLS would wait for the farewell of the peer.
        """
        self.close(reason)
        self.abort()

    def _pause(self) -> None:
        """Stop reading; `Connection` does."""

    def _close_when_sent(self) -> None:
        """Close the transport, which sends its remaining bytes, after the queue has been sent."""
        self.is_closed = True
        if not self._queue:
            self._transport.close()
        elif self._linger_timer is None:
            self._linger_timer = self._loop.call_later(_LINGER_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close the connection at once; unsent responses are lost.

        One that was only just accepted has no transport yet: `connection_made` closes it.
        """
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    def _sending_lost(self) -> None:
        """Release the bytes that waited to be sent."""
        if self._queue or self._out:
            self._forget_queue()
        self._sinks.unsent.release(self)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None

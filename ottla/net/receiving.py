"""The bytes that a connection has received and not handled: part of a frame, or frames that wait.

The beginning of a small frame gets no buffer: it is put back before the next read, which follows it
in the shared buffer. All other bytes move to a private buffer, which grows as bytes arrive and as
far as the budget of all connections allows.
"""

import struct

from ottla.base.errors import ProtocolError
from ottla.net.buffers import ReceiveBuffers
from ottla.net.receive_budget import ReceiveBudget, ReceiveMemory

SIZE = struct.Struct(">i")
PREFIX_BYTES = SIZE.size
# Bytes per read while memory is low.
_SHORT_READ_BYTES = 4 * 1024
# The largest part of a request that is put back into the shared buffer, and the largest request.
_REST_BYTES_MAX = 64 * 1024
_REST_WANTED_MAX = 128 * 1024


def impossible_size(size_bytes: int, frame_bytes_max: int) -> ProtocolError:
    """Return the error for a frame of `size_bytes`, which is more than is allowed or less than 1."""
    return ProtocolError(
        f"a request of {size_bytes} bytes is too large; "
        f"socket.request.max.bytes allows {frame_bytes_max}"
    )


class UnhandledBytes:
    """The unhandled bytes of one connection.

    Methods return False if the connection must not be read until a frame has been handled or
    memory has been granted.
    """

    __slots__ = (
        "_budget",
        "_buffers",
        "_rest",
        "_shared",
        "filled",
        "frame_bytes_max",
        "frame_started_at",
        "memory",
        "private",
        "view",
        "wanted",
    )

    def __init__(
        self,
        buffers: ReceiveBuffers,
        budget: ReceiveBudget,
        memory: ReceiveMemory,
        frame_bytes_max: int,
    ) -> None:
        self._buffers = buffers
        self._budget = budget
        self.memory = memory
        self.frame_bytes_max = frame_bytes_max
        self._shared = buffers.shared
        # The beginning of a small frame, without a private buffer.
        self._rest = b""
        self.private: bytearray | None = None
        self.view = self._shared
        # Of the first frame, `filled` bytes are there and `wanted` make it whole. `filled` is 0 if
        # there are no unhandled bytes, and counts the frames after the first one.
        self.filled = 0
        self.wanted = 0
        # When the first byte of an unfinished frame arrived; 0 if all frames are complete.
        self.frame_started_at = 0.0

    def of_connection(self, memory: ReceiveMemory, frame_bytes_max: int) -> "UnhandledBytes":
        """Return the unhandled bytes of one connection, with the same buffers."""
        return UnhandledBytes(self._buffers, self._budget, memory, frame_bytes_max)

    @property
    def has_frame(self) -> bool:
        """True if the private buffer begins with a whole frame."""
        return self.private is not None and self.filled >= self.wanted

    def free_room(self, host: str = "") -> memoryview:
        """Return the buffer for the next read: the missing rest of a frame, or the shared buffer.

        Of the latter, a small part is used if the client address `host` holds too much memory.
        """
        if self.private is not None:
            return self.view[self.filled : min(self.wanted, len(self.private))]
        start, budget = self.filled, self._budget
        if budget.held_bytes < budget.host_bytes_max or not budget.reads_short(host):
            return self._shared[start:]
        return self._shared[start : start + _SHORT_READ_BYTES]

    def keep(
        self, view: memoryview, position: int, end: int, now: float, *, may_wait: bool = False
    ) -> bool:
        """Move unhandled bytes out of `view`, which are at least one.

        With `may_wait` the part of a small frame gets no buffer: it waits for the next read.
        Raises ProtocolError if the frame is too large.
        """
        filled = end - position
        needed_bytes = PREFIX_BYTES
        if filled >= PREFIX_BYTES:
            (size_bytes,) = SIZE.unpack_from(view, position)
            if not 0 < size_bytes <= self.frame_bytes_max:
                raise impossible_size(size_bytes, self.frame_bytes_max)
            needed_bytes += size_bytes
        if may_wait and filled < needed_bytes <= _REST_WANTED_MAX and filled <= _REST_BYTES_MAX:
            self._rest = view[position:end].tobytes()
            self.filled = filled
            self.frame_started_at = now
            self.memory.keep(filled)
            return True
        old = self.private
        self.private = self._buffers.take(self.memory.begin(filled, needed_bytes))
        self.view = memoryview(self.private)
        self.view[:filled] = view[position:end]
        self.filled, self.wanted = filled, needed_bytes
        if old is not None:
            self._buffers.give_back(old)
        self.frame_started_at = now if filled < needed_bytes else 0.0
        if filled >= needed_bytes:
            return False
        return filled < len(self.private) or self._grow()

    def put_back(self) -> int:
        """Put the beginning of a small frame before the bytes just read; return its size."""
        rest, self._rest = self._rest, b""
        size_bytes = len(rest)
        self._shared[:size_bytes] = rest
        self.filled = 0
        self.frame_started_at = 0.0
        self.memory.release()
        return size_bytes

    def add(self, count: int, now: float) -> bool:
        """Count bytes that were read into the private buffer."""
        private = self.private
        assert private is not None
        self.filled += count
        if self.filled == self.wanted == PREFIX_BYTES:
            # The size is known now: restart with the same bytes and room for the whole frame.
            return self.keep(self.view, 0, PREFIX_BYTES, now)
        if self.filled >= self.wanted:
            self.frame_started_at = 0.0
            return True
        return self.filled < len(private) or self._grow()

    def silent_seconds(self, now: float, active_at: float, *, is_established: bool) -> float:
        """Return for how long (s) an unfinished frame made no progress; 0 if all frames are
        complete.

        After the first request of a connection, every byte is progress.
        """
        if not self.frame_started_at:
            return 0.0
        if is_established:
            return now - active_at
        return self.memory.silent_seconds(now, active_at, self.filled)

    def _grow(self) -> bool:
        if not self.memory.grow():
            return False
        self.enlarge()
        return True

    def enlarge(self) -> None:
        """Move to a private buffer of the size that memory was granted for."""
        old = self.private
        assert old is not None
        self.private = self._buffers.take(self.memory.held_bytes)
        view = memoryview(self.private)
        view[: self.filled] = self.view[: self.filled]
        self.view = view
        self._buffers.give_back(old)

    def drop_private(self) -> None:
        """Give the private buffer back: its bytes have been handled or are not wanted."""
        private = self.private
        assert private is not None
        self.private, self.view = None, self._shared
        self.filled = self.wanted = 0
        self._buffers.give_back(private)
        self.memory.release()

    def forget(self) -> None:
        """Drop all bytes and release their memory: the connection is lost."""
        self._rest = b""
        if self.private is not None:
            self.drop_private()
        self.memory.leave()


def nothing_received(buffers: ReceiveBuffers, budget: ReceiveBudget) -> UnhandledBytes:
    """Return the unhandled bytes of all connections that had no unhandled bytes."""
    memory = ReceiveMemory(budget, "", lambda: None)
    return UnhandledBytes(buffers, budget, memory, frame_bytes_max=0)

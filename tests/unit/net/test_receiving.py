"""Unhandled bytes: the beginning of a frame, and frames that wait, without a connection."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.net.buffers import SHARED_BYTES, ReceiveBuffers
from ottla.net.receive_budget import ReceiveBudget, ReceiveMemory
from ottla.net.receiving import UnhandledBytes

NOW = 7.0
FRAME_BYTES_MAX = 1_000_000


class Receiver:
    """The unhandled bytes of one connection, and what they need."""

    def __init__(self, budget_bytes: int = 10_000_000) -> None:
        self.buffers = ReceiveBuffers()
        self.budget = ReceiveBudget(budget_bytes)
        self.memory = ReceiveMemory(self.budget, "127.0.0.1", lambda: None)
        self.received = UnhandledBytes(self.buffers, self.budget, self.memory, FRAME_BYTES_MAX)

    def keep(self, data: bytes, *, may_wait: bool = False) -> bool:
        """Keep `data` as if it had been read into the shared buffer."""
        self.buffers.shared[: len(data)] = data
        return self.received.keep(self.buffers.shared, 0, len(data), NOW, may_wait=may_wait)

    def read(self, data: bytes) -> bool:
        """Add `data` to the private buffer."""
        room = self.received.free_room()
        room[: len(data)] = data
        return self.received.add(len(data), NOW + 1)


def test_beginning_of_a_small_frame_is_put_back_before_the_next_read(framed) -> None:
    """The next read follows the kept bytes in the shared buffer, and no memory stays held."""
    receiver = Receiver()
    stream = framed(b"abcdef")
    assert receiver.keep(stream[:7], may_wait=True)
    received = receiver.received
    assert (received.private, received.frame_started_at) == (None, NOW)
    room = received.free_room()
    assert len(room) == SHARED_BYTES - 7
    room[:3] = stream[7:]
    assert received.put_back() == 7
    assert bytes(receiver.buffers.shared[:10]) == stream
    assert (received.filled, received.frame_started_at, receiver.budget.held_bytes) == (0, 0.0, 0)


def test_reads_are_short_while_memory_is_low(framed) -> None:
    """Few bytes are read at once, so that little has to be kept."""
    receiver = Receiver()
    receiver.budget.hold(2 * receiver.budget.limit_bytes)
    assert len(receiver.received.free_room()) == 4096


def test_private_buffer_is_offered_only_up_to_the_end_of_the_frame(framed) -> None:
    """The bytes after an unfinished frame stay in the socket."""
    receiver = Receiver()
    stream = framed(b"x" * 300_000)
    assert receiver.keep(stream[:100_000])
    received = receiver.received
    assert len(received.free_room()) == 200_004
    assert receiver.read(stream[100_000:])
    assert received.has_frame
    assert bytes(received.view[: received.filled]) == stream
    assert received.frame_started_at == 0.0


def test_whole_frame_stops_reading_until_it_is_handled(framed) -> None:
    """A frame that waits is kept whole, and it is not unfinished."""
    receiver = Receiver()
    assert not receiver.keep(framed(b"one") + framed(b"two"))
    assert receiver.received.has_frame
    assert receiver.received.frame_started_at == 0.0


def test_size_alone_is_followed_by_room_for_the_frame(framed) -> None:
    """Once the four bytes of the size are there, the whole frame is offered room."""
    receiver = Receiver()
    stream = framed(b"y" * 50)
    assert receiver.keep(stream[:2])
    assert receiver.read(stream[2:4])
    assert len(receiver.received.free_room()) == 50
    assert not receiver.received.has_frame


def test_frame_that_gets_no_memory_stops_reading(framed) -> None:
    """The connection waits for memory, and the bytes that have arrived stay."""
    receiver = Receiver(budget_bytes=200_000)
    receiver.budget.hold(200_000)
    stream = framed(b"z" * 500_000)
    assert not receiver.keep(stream[:4096])
    assert receiver.memory.is_waiting
    assert receiver.received.filled == 4096


@pytest.mark.parametrize("size_bytes", [-1, 0, FRAME_BYTES_MAX + 1])
def test_impossible_size_is_refused_before_memory_is_held(size_bytes: int) -> None:
    """The error names the size and the option that limits it."""
    receiver = Receiver()
    with pytest.raises(ProtocolError, match=f"{size_bytes} bytes.*socket.request.max.bytes"):
        receiver.keep(size_bytes.to_bytes(4, "big", signed=True))
    assert receiver.budget.held_bytes == 0


def test_forgetting_returns_all_buffers(framed) -> None:
    """A lost connection gives its private buffer back to the pool and holds no memory."""
    receiver = Receiver()
    receiver.keep(framed(b"x" * 300_000)[:100_000])
    private = receiver.received.private
    receiver.received.forget()
    assert receiver.budget.held_bytes == 0
    assert receiver.buffers.take(len(private)) is private

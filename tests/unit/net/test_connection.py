"""One connection: frames, responses in order, and limits."""

import asyncio
import random
from typing import Any

import pytest

from ottla.base.errors import ProtocolError
from ottla.net.connection import Connection, Reply
from ottla.net.limits import Limits


async def test_frames_of_one_read_are_answered_in_one_write(wire_of, framed, echo) -> None:
    """All complete frames of a wake-up are handled, and their responses are joined."""
    wire = wire_of(echo)
    wire.receive(framed(b"one") + framed(b"two") + framed(b"three"))
    assert wire.answers() == [b"one", b"two", b"three"]
    assert wire.transport.writes == 1


async def test_a_connection_made_while_the_endpoint_begins_to_serve_is_served(
    wire_of, framed, echo
) -> None:
    """The event loop constructs the protocol one iteration before it has a transport."""
    endpoint = wire_of(echo).endpoint
    handler, endpoint.handler = endpoint.handler, None
    connection = Connection(endpoint)
    endpoint.handler = handler
    wire = wire_of(echo, connection=connection)
    wire.receive(framed(b"one"))
    assert wire.answers() == [b"one"]


async def test_a_connection_that_is_aborted_before_it_is_made_is_closed(wire_of, echo) -> None:
    """A broker that is killed aborts also the connections that it has only just accepted."""
    connection = Connection(wire_of(echo).endpoint)
    connection.abort()
    wire = wire_of(echo, connection=connection)
    assert wire.transport.is_closed
    connection.connection_lost(None)


@pytest.mark.parametrize("seed", range(8))
async def test_frames_split_anywhere_arrive_complete(wire_of, framed, echo, seed: int) -> None:
    """However the stream is split, the same frames are received and all memory is released."""
    rng = random.Random(seed)
    bodies = [rng.randbytes(rng.choice([1, 3, 700, 5_000, 300_000, 600_000])) for _ in range(12)]
    stream = b"".join(framed(body) for body in bodies)
    wire = wire_of(echo)
    position = 0
    while position < len(stream):
        step = rng.choice([1, 2, 3, 4, 5, 1000, 70_000, 500_000])
        wire.receive(stream[position : position + step])
        position += step
    assert wire.endpoint.frames == bodies
    assert wire.answers() == bodies
    assert wire.endpoint.budget.held_bytes == 0


async def test_a_frame_can_be_patched_in_place(wire_of, framed) -> None:
    """Frames are writable, in the shared buffer and in private ones."""
    wire = wire_of(lambda connection, body: connection.send([body]))
    original = wire.endpoint.frame

    def patch(connection: Connection, view: memoryview) -> None:
        view[0:1] = b"X"
        original(connection, view)

    wire.connection._handle = patch
    wire.receive(framed(b"a" * 10))
    wire.receive(framed(b"b" * 400_000))
    assert [body[:2] for body in wire.endpoint.frames] == [b"Xa", b"Xb"]


async def test_answers_keep_the_order_of_requests(wire_of, framed) -> None:
    """A deferred response delays later ones that were read ahead."""
    replies: dict[bytes, Reply] = {}

    def answer(connection: Connection, body: bytes) -> None:
        if body.startswith(b"slow"):
            replies[body] = connection.defer(is_blocking=False)
        else:
            connection.send([body])

    wire = wire_of(answer)
    wire.receive(b"".join(map(framed, (b"slow1", b"a", b"slow2", b"b"))))
    assert wire.endpoint.frames == [b"slow1", b"a", b"slow2", b"b"]
    replies[b"slow2"].send([b"2"])
    assert wire.answers() == []
    replies[b"slow1"].send([b"1"])
    assert wire.answers() == [b"1", b"a", b"2", b"b"]


async def test_blocking_response_delays_later_requests(wire_of, framed) -> None:
    """The next request takes effect after the response, as Kafka mutes a channel."""
    replies: list[Reply] = []

    def answer(connection: Connection, body: bytes) -> None:
        if body == b"slow":
            replies.append(connection.defer())
        else:
            connection.send([body])

    wire = wire_of(answer)
    wire.receive(framed(b"slow") + framed(b"next") + framed(b"last"))
    assert wire.endpoint.frames == [b"slow"]
    assert not wire.transport.is_reading_now
    replies[0].send([b"done"])
    assert wire.endpoint.frames == [b"slow", b"next", b"last"]
    assert wire.answers() == [b"done", b"next", b"last"]
    assert wire.transport.is_reading_now
    assert wire.endpoint.budget.held_bytes == 0


async def test_request_without_response_sends_no_bytes(wire_of, framed) -> None:
    """With acks=0 nothing is sent; an empty deferred response sends nothing either."""

    def answer(connection: Connection, body: bytes) -> None:
        if body == b"later":
            connection.defer().send_nothing()
        elif body != b"silent":
            connection.send([body])

    wire = wire_of(answer)
    wire.receive(framed(b"silent") + framed(b"later") + framed(b"spoken"))
    assert wire.answers() == [b"spoken"]


async def test_reading_stops_if_the_client_does_not_read(wire_of, framed, echo) -> None:
    """If unsent responses exceed the limit, no further requests are handled, and nothing is lost."""
    wire = wire_of(echo, Limits(unsent_bytes_high=1000))
    wire.transport.takes_all = False
    bodies = [bytes([number]) * 600 for number in range(20)]
    wire.receive(b"".join(map(framed, bodies)))
    assert len(wire.endpoint.frames) < 6
    assert not wire.transport.is_reading_now
    while wire.transport.unsent:
        wire.transport.drain()
    assert wire.answers() == bodies
    assert wire.transport.is_reading_now


async def test_unsent_responses_are_counted_until_they_are_sent(wire_of, framed, echo) -> None:
    """Handlers see the remaining room, and a lost connection releases its part."""
    wire = wire_of(echo, Limits(unsent_bytes_high=1000))
    assert wire.connection.answer_room_bytes == 10_000
    wire.transport.takes_all = False
    wire.receive(framed(b"x" * 4000))
    assert wire.connection.answer_room_bytes == 10_000 - 4004
    wire.transport.drain()
    assert wire.connection.answer_room_bytes == 10_000
    wire.receive(framed(b"x" * 20_000))
    assert wire.connection.answer_room_bytes == 0
    wire.connection.connection_lost(None)
    assert wire.endpoint.unsent.held_bytes == 0


@pytest.mark.parametrize("size", [-1, 0, 1001, 2**31 - 1])
async def test_invalid_size_closes_the_connection(wire_of, echo, size: int) -> None:
    """Sizes below one byte or above socket.request.max.bytes close the connection at once."""
    wire = wire_of(echo, Limits(frame_bytes_max=1000))
    wire.receive(size.to_bytes(4, "big", signed=True))
    assert wire.transport.is_closed
    assert wire.endpoint.frames == []


async def test_protocol_error_closes_after_earlier_responses(wire_of, framed) -> None:
    """Responses from before the bad frame are sent."""

    def answer(connection: Connection, body: bytes) -> None:
        if body == b"bad":
            raise ProtocolError("bad frame")
        connection.send([body])

    wire = wire_of(answer)
    wire.receive(framed(b"good") + framed(b"bad") + framed(b"never"))
    assert wire.answers() == [b"good"]
    assert wire.transport.is_closed
    assert wire.endpoint.frames == [b"good", b"bad"]


async def test_large_part_is_written_separately(wire_of, framed) -> None:
    """Record buffers are not copied into a joined write."""
    records = b"r" * 200_000
    wire = wire_of(lambda connection, body: connection.send([b"head", records, b"tail"]))
    written: list[Any] = []
    original = wire.transport.write
    wire.transport.write = lambda data: (written.append(data), original(data))[1]
    wire.receive(framed(b"x"))
    assert any(part is records for part in written)
    assert wire.answers() == [b"head" + records + b"tail"]


async def test_memory_depends_on_received_bytes(wire_of) -> None:
    """A client that announces 100 MB and sends a few bytes costs 2 MiB."""
    wire = wire_of(lambda connection, body: None)
    wire.receive((100_000_000).to_bytes(4, "big") + b"x" * 10)
    assert wire.connection.received.private is not None
    assert len(wire.connection.received.private) <= 2 * 1024 * 1024


async def test_part_of_a_small_frame_costs_its_own_size(wire_of, framed, echo) -> None:
    """It has no buffer; one read completes it and brings the frames that follow."""
    wire = wire_of(echo)
    stream = framed(b"a" * 5000) + framed(b"b" * 5000) + framed(b"c" * 5000)
    wire.receive(stream[:7000])
    assert (
        wire.endpoint.budget.held_bytes == wire.connection.received.memory.held_bytes == 7000 - 5004
    )
    wire.receive(stream[7000:])
    assert wire.endpoint.frames == [b"a" * 5000, b"b" * 5000, b"c" * 5000]
    assert wire.transport.writes == 2
    assert wire.endpoint.budget.held_bytes == 0


async def test_a_frame_in_small_pieces_is_as_old_as_its_first_byte(wire_of, framed, echo) -> None:
    """The age does not depend on the number of reads; the next frame has a time of its own."""
    wire, times = wire_of(echo), []
    stream = framed(b"x" * 50)
    for byte in stream[:-1]:
        wire.receive(bytes([byte]))
        times.append(wire.connection.received.frame_started_at)
    assert len(set(times)) == 2
    # The size has its own buffer; the frame counts from the first byte after it.
    assert len(set(times[4:])) == 1
    wire.receive(stream[-1:] + stream[:2])
    assert wire.connection.received.frame_started_at > times[-1]
    assert wire.endpoint.frames == [b"x" * 50]


async def test_connection_waits_if_the_budget_is_exhausted(wire_of, framed, echo) -> None:
    """A frame that exceeds the memory of all connections waits."""
    wire = wire_of(echo)
    budget = wire.endpoint.budget
    budget.hold(budget.limit_bytes)
    stream = framed(b"z" * 300_000)
    wire.receive(stream)
    assert not wire.transport.is_reading_now
    budget.give_back(budget.limit_bytes)
    await _turn()
    assert wire.transport.is_reading_now
    wire.receive(wire.left)
    assert wire.answers() == [b"z" * 300_000]
    assert budget.held_bytes == 0


async def test_lost_connection_releases_everything(wire_of, framed) -> None:
    """Memory, place in the queue and deferred responses are released with the connection."""
    abandoned: list[str] = []

    def answer(connection: Connection, body: bytes) -> None:
        reply = connection.defer(held_bytes=500)
        reply.on_abandon = lambda: abandoned.append("told")

    wire = wire_of(answer)
    wire.receive(framed(b"one") + framed(b"two" * 1000)[:100])
    assert wire.endpoint.budget.held_bytes > 0
    wire.connection.connection_lost(None)
    assert wire.endpoint.budget.held_bytes == 0
    assert abandoned == ["told"]


async def test_response_after_a_disconnect_is_dropped(wire_of, framed) -> None:
    """A handler can respond after the connection was lost."""
    replies: list[Reply] = []
    wire = wire_of(lambda connection, body: replies.append(connection.defer()))
    wire.receive(framed(b"one"))
    wire.connection.connection_lost(None)
    replies[0].send([b"late"])
    assert wire.answers() == []


async def test_draining_sends_pending_responses_and_closes(wire_of, framed) -> None:
    """A draining connection reads no request, and sends its pending responses."""
    replies: list[Reply] = []
    wire = wire_of(lambda connection, body: replies.append(connection.defer()))
    wire.receive(framed(b"one"))
    wire.connection.drain()
    assert not wire.transport.is_closed
    replies[0].send([b"done"])
    assert wire.answers() == [b"done"]
    assert wire.transport.is_closed


async def test_reading_ahead_is_limited(wire_of, framed) -> None:
    """At most `pending_max` requests of one connection wait for their response."""
    replies: list[Reply] = []
    wire = wire_of(
        lambda connection, body: replies.append(connection.defer(is_blocking=False)),
        Limits(pending_max=4),
    )
    wire.receive(b"".join(framed(bytes([number])) for number in range(10)))
    assert len(wire.endpoint.frames) == 4
    while replies:
        replies.pop(0).send([b"ok"])
    assert len(wire.endpoint.frames) == 10
    assert wire.answers() == [b"ok"] * 10


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)

"""A muted connection sends and does not read, on virtual time (KIP-219)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.base.rng import SeededRng
from ottla.net.connection import Connection, Reply
from ottla.net.limits import Limits
from ottla.testing.sim.loop import SimLoop

Scene = Callable[[], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Scene], None]:
    """Return a function that runs a scenario on virtual time."""

    def run(scene: Scene) -> None:
        with SimLoop(SeededRng(1)) as loop:
            loop.run(scene())
            loop.raise_failures()

    return run


def beyond_quota(connection: Connection, body: bytes) -> None:
    """Respond; a client that sends `much` is muted for two seconds."""
    connection.send([body])
    if body == b"much":
        connection.mute(2.0)


def test_response_is_sent_and_the_next_request_waits(play, wire_of, framed) -> None:
    """Requests that arrived with the one beyond the quota are handled after the throttle time."""

    async def scene() -> None:
        wire = wire_of(beyond_quota)
        wire.receive(framed(b"much") + framed(b"next") + framed(b"last"))
        assert wire.answers() == [b"much"]
        assert wire.connection.is_muted
        assert not wire.transport.is_reading_now
        await asyncio.sleep(1.99)
        assert wire.endpoint.frames == [b"much"]
        await asyncio.sleep(0.02)
        assert wire.answers() == [b"much", b"next", b"last"]
        assert wire.transport.is_reading_now
        assert not wire.connection.is_muted
        assert wire.endpoint.budget.held_bytes == 0

    play(scene)


def test_each_request_that_waited_can_mute_again(play, wire_of, framed) -> None:
    """The connection is not read between the two throttle times."""

    async def scene() -> None:
        wire = wire_of(beyond_quota)
        wire.receive(framed(b"much") * 3)
        for count in (1, 2, 3):
            assert wire.answers() == [b"much"] * count
            assert not wire.transport.is_reading_now
            await asyncio.sleep(2.01)
        assert wire.transport.is_reading_now

    play(scene)


def test_request_that_waited_for_another_response_can_mute(play, wire_of, framed) -> None:
    """Its connection, which was never muted before, is not read until the throttle time is over."""

    async def scene() -> None:
        replies: list[Reply] = []

        def handle(connection: Connection, body: bytes) -> None:
            if body == b"slow":
                replies.append(connection.defer())
            else:
                beyond_quota(connection, body)

        wire = wire_of(handle)
        wire.receive(framed(b"slow") + framed(b"much"))
        assert wire.endpoint.frames == [b"slow"]
        replies[0].send([b"done"])
        assert wire.answers() == [b"done", b"much"]
        assert not wire.transport.is_reading_now
        await asyncio.sleep(2.01)
        assert wire.transport.is_reading_now

    play(scene)


def test_a_part_of_a_request_waits_too(play, wire_of, framed) -> None:
    """Bytes of an incomplete request are kept, and the muted time does not count as slow."""

    async def scene() -> None:
        wire = wire_of(beyond_quota)
        loop = asyncio.get_running_loop()
        stream = framed(b"much") + framed(b"n" * 1000)
        wire.receive(stream[:-400])
        assert wire.connection.received.frame_started_at == pytest.approx(loop.time() + 2)
        await asyncio.sleep(2.01)
        wire.receive(stream[-400:])
        assert wire.answers() == [b"much", b"n" * 1000]

    play(scene)


def test_longer_of_two_mutings_applies(play, wire_of, framed, echo) -> None:
    """A later, shorter one changes nothing; a longer one extends the time."""

    async def scene() -> None:
        wire = wire_of(echo)
        wire.connection.mute(2.0)
        wire.connection.mute(1.0)
        await asyncio.sleep(1.5)
        assert wire.connection.is_muted
        wire.connection.mute(2.0)
        await asyncio.sleep(1.0)
        assert wire.connection.is_muted
        await asyncio.sleep(1.1)
        assert not wire.connection.is_muted
        wire.receive(framed(b"one"))
        assert wire.answers() == [b"one"]

    play(scene)


def test_delayed_response_is_sent_while_muted(play, wire_of, framed) -> None:
    """Muting delays requests, never responses."""

    async def scene() -> None:
        replies: list[Reply] = []
        wire = wire_of(lambda connection, body: replies.append(connection.defer()))
        wire.receive(framed(b"one") + framed(b"two"))
        wire.connection.mute(2.0)
        replies[0].send([b"done"])
        assert wire.answers() == [b"done"]
        assert wire.endpoint.frames == [b"one"]
        await asyncio.sleep(2.01)
        assert wire.endpoint.frames == [b"one", b"two"]

    play(scene)


def test_client_that_reads_again_stays_muted(play, wire_of, framed, echo) -> None:
    """A drained send buffer does not end the muting, and its end does not drain the buffer."""

    async def scene() -> None:
        wire = wire_of(echo, Limits(unsent_bytes_high=10))
        wire.transport.takes_all = False
        wire.receive(framed(b"x" * 100))
        wire.connection.mute(2.0)
        wire.transport.drain()
        assert wire.connection.is_muted
        assert not wire.transport.is_reading_now
        await asyncio.sleep(2.01)
        assert wire.transport.is_reading_now
        wire.receive(framed(b"y" * 100) + framed(b"z"))
        wire.connection.mute(2.0)
        await asyncio.sleep(2.01)
        assert wire.endpoint.frames[-1] == b"y" * 100
        wire.transport.drain()
        assert wire.endpoint.frames[-1] == b"z"

    play(scene)


def test_time_spent_muted_is_not_idle(play, wire_of, framed) -> None:
    """The idle time of a connection begins when the muting ends."""

    async def scene() -> None:
        wire = wire_of(beyond_quota)
        wire.receive(framed(b"much"))
        assert wire.connection.active_at == pytest.approx(asyncio.get_running_loop().time() + 2)

    play(scene)


@pytest.mark.parametrize("end", ["close", "lost", "drain"])
def test_muted_connection_can_be_closed(play, wire_of, framed, end: str) -> None:
    """No timer and no buffer is kept."""

    async def scene() -> None:
        wire = wire_of(beyond_quota)
        wire.receive(framed(b"much") + framed(b"next"))
        if end == "close":
            wire.connection.close("the test says so")
        elif end == "drain":
            wire.connection.drain()
        if end != "lost":
            assert wire.transport.is_closed
        wire.connection.connection_lost(None)
        assert not wire.connection.is_muted
        assert wire.endpoint.budget.held_bytes == 0
        await asyncio.sleep(3)
        assert wire.endpoint.frames == [b"much"]
        wire.connection.mute(1.0)
        assert not wire.connection.is_muted

    play(scene)


def test_zero_throttle_time_does_not_mute(play, wire_of, framed, echo) -> None:
    """A throttle time of zero does not mute."""

    async def scene() -> None:
        wire = wire_of(echo)
        wire.connection.mute(0.0)
        assert wire.transport.is_reading_now
        wire.receive(framed(b"one"))
        assert wire.answers() == [b"one"]

    play(scene)

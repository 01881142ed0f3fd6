"""Responses that peers do not read: counted for each connection, limited for all together."""

import asyncio

import pytest

from ottla.net.limits import Limits
from ottla.net.unsent import UnsentBudget


class Holder:
    """A connection without a socket."""

    def __init__(self, budget: UnsentBudget, active_at: float) -> None:
        self.budget = budget
        self.active_at = active_at
        self.reasons: list[str] = []

    def drop(self, reason: str) -> None:
        self.reasons.append(reason)
        self.budget.release(self)


async def test_the_bytes_of_a_connection_replace_those_counted_before() -> None:
    """The sum has the last number of each connection."""
    budget, now = UnsentBudget(1000), asyncio.get_running_loop().time()
    first, second = Holder(budget, now), Holder(budget, now)
    for size_bytes in (300, 100, 200):
        budget.hold_for(first, size_bytes)
    budget.hold_for(second, 50)
    assert budget.held_bytes == 250
    budget.hold_for(first, 0)
    budget.release(first)
    budget.release(second)
    assert budget.held_bytes == 0


async def test_connections_with_most_unread_bytes_are_closed_above_the_limit() -> None:
    """The largest are closed, and no more than necessary."""
    budget, now = UnsentBudget(1000), asyncio.get_running_loop().time()
    holders = [Holder(budget, now) for _ in range(5)]
    assert budget.bytes_max == 1500
    for holder, size_bytes in zip(holders, (100, 700, 300, 400, 200), strict=True):
        budget.hold_for(holder, size_bytes)
    assert not any(holder.reasons for holder in holders)
    await asyncio.sleep(0)
    closed = [holder for holder in holders if holder.reasons]
    assert closed == [holders[1]]
    assert budget.held_bytes == 1000


async def test_a_connection_that_reads_outlasts_one_that_does_not() -> None:
    """Of two connections, the smaller one is closed if its peer has not read for a minute."""
    budget, now = UnsentBudget(1000), asyncio.get_running_loop().time()
    slow, dead = Holder(budget, now - 1), Holder(budget, now - 60)
    budget.hold_for(slow, 1100)
    budget.hold_for(dead, 500)
    await asyncio.sleep(0)
    assert not slow.reasons
    (reason,) = dead.reasons
    assert "not read" in reason


async def test_a_client_that_does_not_read_is_closed_above_the_limit(
    wire_of, framed, echo, caplog
) -> None:
    """The log names the reason, and the bytes are released at once."""
    caplog.set_level("INFO")
    wire = wire_of(echo)
    wire.transport.takes_all = False
    wire.receive(framed(b"x" * 20_000))
    await asyncio.sleep(0)
    assert wire.transport.is_closed
    assert "reason=responses are not read, and their memory is needed" in caplog.text
    assert wire.endpoint.unsent.held_bytes == 0
    wire.connection.connection_lost(None)


@pytest.mark.parametrize("is_deferred", [False, True])
async def test_responses_behind_an_earlier_one_are_counted_and_limited(
    wire_of, framed, is_deferred: bool
) -> None:
    """A request that waits lets the connection read ahead no more than one response too far."""
    first = []

    def answer(connection, body: bytes) -> None:
        if not first:
            first.append(connection.defer(is_blocking=False))
        elif is_deferred:
            connection.defer(is_blocking=False).send([body])
        else:
            connection.send([body])

    wire = wire_of(answer, Limits(unsent_bytes_high=7000))
    wire.receive(framed(b"slow") + framed(b"x" * 2000) * 8)
    assert len(wire.endpoint.frames) == 1 + 4
    assert wire.endpoint.unsent.held_bytes == 4 * 2000
    first[0].send([b"done"])
    assert wire.answers() == [b"done"] + 8 * [b"x" * 2000]
    assert wire.endpoint.unsent.held_bytes == 0

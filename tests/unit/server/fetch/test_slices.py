"""Fetch of more partitions than are read at once: a few at a time, with the same response."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.base import slices as lanes
from ottla.replication.delayed import FETCH
from ottla.server.fetch import slices
from ottla.server.fetch.slices import Changes
from ottla.server.handlers import fetch
from tests.handlers.logs import LogsBroker, batch, logs_broker, through_codec, values
from tests.handlers.test_fetch import mentioned, only, request


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Return a broker with replicas and no topic."""
    async with logs_broker() as running:
        yield running


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others run after each partition."""
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 1)
    monkeypatch.setattr(slices, "_READ_AT_ONCE", 1)
    monkeypatch.setattr(lanes, "LANE_SLICE_SECONDS", 0)


def positions(count: int) -> list[tuple[str, int, int]]:
    return [("t", number, 0) for number in range(count)]


async def until_read(broker: LogsBroker, number: int) -> None:
    """Wait until a fetch has read a partition, and not yet the others."""
    async with asyncio.timeout(10):
        while not any(isinstance(one, Changes) for one in broker.partition("t", number).waiters):
            await asyncio.sleep(0)


async def test_records_of_all_partitions(broker: LogsBroker) -> None:
    """The response has them in the order of the request; max_bytes holds for all together."""
    broker.create("t", partitions=4)
    for number in range(4):
        broker.write("t", b"%d" % number, number=number)
    whole = await broker.ask(fetch, request(broker, *positions(4)), 12)
    items = [item for topic in whole.responses for item in topic.partitions]
    assert [values(item.records) for item in items] == [[b"0"], [b"1"], [b"2"], [b"3"]]
    bounded = await broker.ask(fetch, request(broker, *positions(4), max_bytes=1), 12)
    items = [item for topic in bounded.responses for item in topic.partitions]
    assert [values(item.records) for item in items] == [[b"0"], [], [], []]


async def test_fetch_waits_for_records(broker: LogsBroker) -> None:
    """It waits like a small one, and leaves no watches behind."""
    broker.create("t", partitions=3)
    future = broker.begin(fetch, request(broker, *positions(3), max_wait_ms=60_000), 12)
    async with asyncio.timeout(10):
        while not broker.replicas.delayed.waiting_counts[FETCH]:
            await asyncio.sleep(0)
    broker.write("t", b"a", number=1)
    response = through_codec(await future, 12)
    assert mentioned(response) == [0, 1, 2]
    assert not any(broker.partition("t", number).waiters for number in range(3))


@pytest.mark.parametrize("session_epoch", [-1, 0])
async def test_append_while_others_are_read(broker: LogsBroker, session_epoch: int) -> None:
    """The client gets a response at once; its next fetch returns the records."""
    broker.create("t", partitions=3)
    first = request(broker, *positions(3), max_wait_ms=60_000, session_epoch=session_epoch)
    future = broker.begin(fetch, first, 12)
    await until_read(broker, 0)
    broker.write("t", b"a", number=0)
    response = through_codec(await future, 12)
    if session_epoch == 0:
        following = request(broker, session_id=response.session_id, session_epoch=1)
        response = await broker.ask(fetch, following, 12)
        assert mentioned(response) == [0]
        assert values(only(response).records) == [b"a"]


async def test_append_while_a_session_reads_others(broker: LogsBroker) -> None:
    """The session does not become idle on a partition that has changed."""
    broker.create("t", partitions=3)
    opened = await broker.ask(fetch, request(broker, *positions(3), session_epoch=0), 12)
    fields: dict[str, Any] = {"session_id": opened.session_id, "max_wait_ms": 60_000}
    future = broker.begin(fetch, request(broker, *positions(3), session_epoch=1, **fields), 12)
    await until_read(broker, 0)
    broker.partition("t", 0).append_as_leader(batch(b"a"), acks=1)
    assert mentioned(through_codec(await future, 12)) == []
    response = await broker.ask(fetch, request(broker, session_epoch=2, **fields), 12)
    assert values(only(response).records) == [b"a"]

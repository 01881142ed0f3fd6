"""OffsetForLeaderEpoch: the end offset of an epoch."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import offset_for_leader_epoch
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.handlers.logs import NODE, OTHER, LogsBroker

VERSIONS = range(offset_for_leader_epoch.MIN_VERSION, offset_for_leader_epoch.MAX_VERSION + 1)


async def end(
    broker: LogsBroker, epoch: int, version: int, current: int = -1, replica: int = -1
) -> Any:
    partition = OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current
    )
    topics = [OffsetForLeaderTopic(topic="t", partitions=[partition])]
    request = OffsetForLeaderEpochRequest(replica_id=replica, topics=topics)
    response = await broker.ask(offset_for_leader_epoch, request, version)
    return response.topics[0].partitions[0]


@pytest.fixture
def history(broker: LogsBroker) -> LogsBroker:
    """Return a broker with two records in epoch 3 and one in epoch 5."""
    broker.create("t", leader_epoch=3)
    broker.write("t", b"a", b"b")
    broker.create("t", leader_epoch=5)
    broker.write("t", b"c")
    return broker


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("epoch", "expected"), [(3, (3, 2)), (4, (3, 2)), (5, (5, 3)), (6, (-1, -1)), (-1, (-1, -1))]
)
async def test_end_offsets_of_epochs(
    history: LogsBroker, version: int, epoch: int, expected: tuple[int, int]
) -> None:
    """The largest epoch up to the requested one is returned; unknown epochs have no end."""
    response = await end(history, epoch, version)
    assert (response.error_code, response.leader_epoch, response.end_offset) == (0, *expected)


async def test_an_older_leader_epoch_is_fenced(history: LogsBroker) -> None:
    """A client that knows a former leader gets an error at once (KIP-320)."""
    assert (await end(history, 3, 4, 3)).error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("was_leader", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_response_waits_until_the_broker_knows_the_epoch_of_its_client(
    history: LogsBroker, version: int, was_leader: bool
) -> None:
    """The client has heard of the new leader from another broker, which was informed earlier."""
    if not was_leader:
        history.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=6)
    waiting = asyncio.ensure_future(end(history, 3, version, 7))
    await asyncio.sleep(0)
    assert not waiting.done()
    history.create("t", replicas=(NODE, OTHER), leader_epoch=7)
    answer = await waiting
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, 3, 2)


async def test_an_epoch_that_the_broker_never_hears_of_is_unknown(history: LogsBroker) -> None:
    """The response waits for at most a second."""
    waiting = asyncio.ensure_future(end(history, 3, 4, 6))
    await asyncio.sleep(0)
    assert not waiting.done()
    history.clock.now += 1.0
    assert (await waiting).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_followers_do_not_wait_for_an_epoch(history: LogsBroker) -> None:
    """They ask again by themselves, and soon."""
    answer = await end(history, 3, 4, 6, replica=OTHER)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_unknown_topic_is_rejected(broker: LogsBroker) -> None:
    """The partition has the error UNKNOWN_TOPIC_OR_PARTITION."""
    assert (await end(broker, 0, 4)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

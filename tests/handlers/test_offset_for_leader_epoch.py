"""OffsetForLeaderEpoch: the end offset of an epoch."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import offset_for_leader_epoch
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.handlers.logs import LogsBroker

VERSIONS = range(offset_for_leader_epoch.MIN_VERSION, offset_for_leader_epoch.MAX_VERSION + 1)


async def end(broker: LogsBroker, epoch: int, version: int, current: int = -1) -> Any:
    partition = OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current
    )
    topics = [OffsetForLeaderTopic(topic="t", partitions=[partition])]
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
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


@pytest.mark.parametrize(
    ("current", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_leader_epochs_fence(history: LogsBroker, current: int, code: ErrorCode) -> None:
    """A client with another leader epoch gets an error (KIP-320)."""
    assert (await end(history, 3, 4, current)).error_code == code


async def test_unknown_topic_is_rejected(broker: LogsBroker) -> None:
    """The partition has the error UNKNOWN_TOPIC_OR_PARTITION."""
    assert (await end(broker, 0, 4)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

"""OffsetForLeaderEpoch: where an epoch ended."""

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
    asked = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
    answer = await broker.ask(offset_for_leader_epoch, asked, version)
    return answer.topics[0].partitions[0]


@pytest.fixture
def history(broker: LogsBroker) -> LogsBroker:
    """Two records in epoch 3, one in epoch 5."""
    broker.create("t", leader_epoch=3)
    broker.write("t", b"a", b"b")
    broker.create("t", leader_epoch=5)
    broker.write("t", b"c")
    return broker


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("epoch", "expected"), [(3, (3, 2)), (4, (3, 2)), (5, (5, 3)), (6, (-1, -1)), (-1, (-1, -1))]
)
async def test_ends_of_epochs(
    history: LogsBroker, version: int, epoch: int, expected: tuple[int, int]
) -> None:
    """The largest epoch not above the asked one; unknown ones have no end."""
    answer = await end(history, epoch, version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, *expected)


@pytest.mark.parametrize(
    ("current", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_leader_epochs_fence(history: LogsBroker, current: int, code: ErrorCode) -> None:
    """Who believes in another leader epoch hears so (KIP-320)."""
    assert (await end(history, 3, 4, current)).error_code == code


async def test_an_unknown_topic_is_refused(broker: LogsBroker) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION for the partition."""
    assert (await end(broker, 0, 4)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

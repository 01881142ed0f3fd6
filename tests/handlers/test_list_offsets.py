"""ListOffsets: the first and last offset of a partition, and offsets by time."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import list_offsets
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.handlers.logs import NODE, OTHER, LogsBroker

VERSIONS = range(list_offsets.MIN_VERSION, list_offsets.MAX_VERSION + 1)


def request(
    timestamp: int, *, topic: str = "t", count: int = 1, **fields: Any
) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition] * count)]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


async def found(broker: LogsBroker, requested: ListOffsetsRequest, version: int = 11) -> Any:
    response = await broker.ask(list_offsets, requested, version)
    return response.topics[0].partitions[0]


@pytest.fixture
def filled(broker: LogsBroker) -> LogsBroker:
    """Return a broker with three records at 1000, 3000 and 2000 ms."""
    broker.create("t")
    for timestamp in (1000, 3000, 2000):
        broker.write("t", b"v", timestamp=timestamp)
    return broker


@pytest.mark.parametrize("version", VERSIONS)
async def test_both_ends_of_the_log(filled: LogsBroker, version: int) -> None:
    """A timestamp of -1 is the high watermark, -2 the log start; leader epochs begin with version
    4.
    """
    epoch = 3 if version >= 4 else -1
    latest = await found(filled, request(-1), version)
    earliest = await found(filled, request(-2), version)
    assert (latest.offset, latest.timestamp, latest.leader_epoch) == (3, -1, epoch)
    assert (earliest.offset, earliest.timestamp, earliest.leader_epoch) == (0, -1, epoch)


@pytest.mark.parametrize(
    ("timestamp", "offset", "stamp"),
    [(0, 0, 1000), (1000, 0, 1000), (1001, 1, 3000), (3000, 1, 3000), (3001, -1, -1)],
)
async def test_offset_by_time(filled: LogsBroker, timestamp: int, offset: int, stamp: int) -> None:
    """The first record at or after the time is returned, otherwise offset and timestamp are -1."""
    response = await found(filled, request(timestamp))
    assert (response.error_code, response.offset, response.timestamp) == (0, offset, stamp)


async def test_the_newest_record(filled: LogsBroker) -> None:
    """A timestamp of -3 finds the largest timestamp, which need not be at the end (KIP-734)."""
    response = await found(filled, request(-3))
    assert (response.offset, response.timestamp) == (1, 3000)


async def test_an_empty_partition_has_no_newest_record(broker: LogsBroker) -> None:
    """An empty partition is not an error."""
    broker.create("t")
    response = await found(broker, request(-3))
    assert (response.error_code, response.offset, response.timestamp) == (0, -1, -1)


@pytest.mark.parametrize(("timestamp", "offset"), [(-4, 0), (-5, -1), (-6, -1)])
async def test_log_without_tiered_storage(filled: LogsBroker, timestamp: int, offset: int) -> None:
    """The earliest local offset is the earliest; there is no tiered one."""
    response = await found(filled, request(timestamp))
    assert (response.error_code, response.offset) == (0, offset)


@pytest.mark.parametrize(
    ("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-100, 11)]
)
async def test_newer_timestamps_need_newer_versions(
    filled: LogsBroker, timestamp: int, version: int
) -> None:
    """A timestamp that the version does not know is UNSUPPORTED_VERSION."""
    response = await found(filled, request(timestamp), version)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_uncommitted_records_are_not_found(broker: LogsBroker) -> None:
    """An uncommitted record is not found by time, as the newest record or as the log end."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", timestamp=1000)
    broker.write("t", b"b", timestamp=2000)
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    assert (await found(broker, request(-1))).offset == 1
    assert (await found(broker, request(2000))).offset == -1
    assert (await found(broker, request(-3))).offset == -1


@pytest.mark.parametrize(
    ("version", "code"), [(4, "LEADER_NOT_AVAILABLE"), (5, "OFFSET_NOT_AVAILABLE")]
)
async def test_new_leader_does_not_return_its_end_yet(
    broker: LogsBroker, version: int, code: str
) -> None:
    """Otherwise the log end could decrease for a consumer (KIP-207); the log start is known."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=4)
    assert (await found(broker, request(-1), version)).error_code == ErrorCode[code]
    assert (await found(broker, request(0), version)).error_code == ErrorCode[code]
    assert (await found(broker, request(-2), version)).error_code == 0


async def test_repeated_partition_is_rejected(filled: LogsBroker) -> None:
    """It has one result with INVALID_REQUEST."""
    response = await filled.ask(list_offsets, request(-1, count=2), 9)
    codes = [item.error_code for item in response.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST]


async def test_topic_without_partitions_is_omitted(filled: LogsBroker) -> None:
    """The topic is not in the response."""
    response = await filled.ask(list_offsets, request(-1, count=0), 9)
    assert response.topics == []


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH), (3, ErrorCode.NONE)],
)
async def test_leader_epochs_fence(filled: LogsBroker, epoch: int, code: ErrorCode) -> None:
    """A client with another leader epoch gets an error."""
    assert (await found(filled, request(-1, current_leader_epoch=epoch))).error_code == code


async def test_unknown_topic_is_rejected(broker: LogsBroker) -> None:
    """The partition has the error UNKNOWN_TOPIC_OR_PARTITION."""
    response = await found(broker, request(-1, topic="nope"))
    assert response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("replica", "end"), [(-1, 1), (-2, 3), (OTHER, 3)])
async def test_replicas_see_uncommitted_records(broker: LogsBroker, replica: int, end: int) -> None:
    """A replica reads to the log end."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b", b"c")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    list_request = request(-1)
    list_request.replica_id = replica
    assert (await found(broker, list_request)).offset == end

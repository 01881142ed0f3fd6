"""DeleteRecords: the log start advances."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.replication.partition import READ_COMMITTED
from ottla.server.handlers import delete_records, list_offsets
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.handlers.logs import NODE, OTHER, LogsBroker
from tests.handlers.transactions import transactions_broker

VERSIONS = range(delete_records.MIN_VERSION, delete_records.MAX_VERSION + 1)

ENDS = {"earliest": -2, "latest": -1}


async def delete(
    broker: LogsBroker, offset: int, topic: str = "t", version: int = 2, timeout_ms: int = 10_000
) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsTopic(name=topic, partitions=[partition])]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
    response = await broker.ask(delete_records, request, version)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("offset", "start"), [(2, 2), (-1, 3), (0, 0), (3, 3)])
async def test_records_before_the_offset_are_deleted(
    broker: LogsBroker, version: int, offset: int, start: int
) -> None:
    """An offset of -1 is the high watermark; the response has the new log start."""
    broker.create("t")
    broker.write("t", b"a", b"b", b"c")
    response = await delete(broker, offset, version=version)
    assert (response.error_code, response.low_watermark) == (0, start)
    assert broker.partition("t").log.log_start_offset == start


async def test_read_committed_end_is_not_below_the_new_log_start() -> None:
    """If records of an open transaction are deleted, the last stable offset is the log start."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", b"b", b"c", version=12) == 0
        assert (await delete(broker, 2)).low_watermark == 2
        result = {}
        for name, timestamp in ENDS.items():
            partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            topics = [ListOffsetsTopic(name="t", partitions=[partition])]
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=READ_COMMITTED, topics=topics
            )
            response = await broker.ask(list_offsets, request, 5)
            result[name] = response.topics[0].partitions[0].offset
        assert result == {"earliest": 2, "latest": 2}
        fetched = await broker.read(offset=2)
        assert (fetched.error_code, fetched.last_stable_offset, fetched.records) == (0, 2, b"")
        assert await broker.end(producer, version=5) == 0
        assert (await broker.read(offset=2)).last_stable_offset == 4


async def test_response_waits_for_the_logs_of_the_followers(broker: LogsBroker) -> None:
    """The low watermark is the lowest of all replicas: no live broker has the records any more."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b", b"c")
    partition = broker.partition("t")
    partition.follower_fetched(OTHER, 3, 0)
    asking = asyncio.ensure_future(delete(broker, -1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert partition.log.log_start_offset == 3
    assert not asking.done()
    partition.follower_fetched(OTHER, 3, 3)
    response = await asking
    assert (response.error_code, response.low_watermark) == (0, 3)


async def test_response_does_not_wait_longer_than_it_may(broker: LogsBroker) -> None:
    """The records are deleted on the leader, and the followers delete them later."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    response = await delete(broker, -1, timeout_ms=1)
    assert (response.error_code, response.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert broker.partition("t").log.log_start_offset == 1


async def test_response_says_that_the_leader_was_replaced(broker: LogsBroker) -> None:
    """The next leader may still have the records."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    asking = asyncio.ensure_future(delete(broker, -1))
    await asyncio.sleep(0)
    broker.partition("t").retire()
    assert (await asking).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("offset", [-2, 2, 99])
async def test_only_committed_records_can_be_deleted(broker: LogsBroker, offset: int) -> None:
    """Offsets below 0 or above the high watermark are OFFSET_OUT_OF_RANGE."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    response = await delete(broker, offset)
    assert (response.error_code, response.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_topic_without_a_cleanup_policy_has_its_records_deleted(broker: LogsBroker) -> None:
    """An empty cleanup.policy keeps everything by itself, and allows requests, as Kafka 4.x does."""
    broker.create("t", config={"cleanup.policy": ""})
    broker.write("t", b"a", b"b", b"c")
    response = await delete(broker, 2)
    assert (response.error_code, response.low_watermark) == (0, 2)


@pytest.mark.parametrize(
    ("topic", "config", "code"),
    [
        ("nope", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GROUP_OFFSETS_TOPIC, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("t", {"cleanup.policy": "compact"}, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_some_topics_reject_the_deletion(
    broker: LogsBroker, topic: str, config: dict[str, str] | None, code: ErrorCode
) -> None:
    """Unknown, internal and compacted topics are rejected."""
    if config is not None:
        broker.create(topic, config=config)
    assert (await delete(broker, 0, topic=topic)).error_code == code


async def test_last_offset_of_a_repeated_partition_applies(broker: LogsBroker) -> None:
    """A repeated partition has one result; a topic without partitions has no result."""
    broker.create("t")
    broker.write("t", b"a", b"b", b"c")
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (3, 1)]
    topics = [
        DeleteRecordsTopic(name="t", partitions=partitions),
        DeleteRecordsTopic(name="t", partitions=[]),
    ]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
    response = await broker.ask(delete_records, request, 2)
    assert [item.low_watermark for item in response.topics[0].partitions] == [1]
    assert len(response.topics) == 1

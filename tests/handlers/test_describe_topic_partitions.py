"""DescribeTopicPartitions: topics in order, in pages."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server import operations
from ottla.server.handlers import describe_topic_partitions
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.handlers.logs import NODE, OTHER, LogsBroker

GONE = 9


async def describe(
    broker: LogsBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Any:
    """Describe one page."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return await broker.ask(describe_topic_partitions, request, 0)


def rows(response: Any) -> list[tuple[str, list[int]]]:
    """Return the topics and the numbers of their partitions."""
    return [
        (topic.name, [p.partition_index for p in topic.partitions]) for topic in response.topics
    ]


def next_of(response: Any) -> tuple[str, int] | None:
    """Return the cursor of the next page."""
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_a_topic_is_described_with_its_partitions(broker: LogsBroker) -> None:
    """The lists of eligible leaders are empty, never null."""
    topic = broker.create("t", partitions=2)
    response = await describe(broker, "t")
    (description,) = response.topics
    assert (description.error_code, description.topic_id, description.is_internal) == (
        0,
        topic.topic_id,
        False,
    )
    assert description.topic_authorized_operations == operations.ON_TOPIC
    first = description.partitions[0]
    assert (first.leader_id, first.leader_epoch) == (NODE, 3)
    assert (first.replica_nodes, first.isr_nodes, first.offline_replicas) == ([NODE], [NODE], [])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])
    assert (rows(response), next_of(response)) == ([("t", [0, 1])], None)


async def test_empty_request_describes_all_topics_in_order(broker: LogsBroker) -> None:
    """A repeated name has one result."""
    for name in ("b", "a", "__consumer_offsets"):
        broker.create(name)
    response = await describe(broker)
    assert [topic.name for topic in response.topics] == ["__consumer_offsets", "a", "b"]
    assert [topic.is_internal for topic in response.topics] == [True, False, False]
    assert rows(await describe(broker, "b", "a", "b")) == [("a", [0]), ("b", [0])]


async def test_pages_return_every_partition_once(broker: LogsBroker) -> None:
    """A page ends within a topic or between two topics."""
    broker.create("a", partitions=3)
    broker.create("b", partitions=1)
    broker.create("c", partitions=2)
    pages, cursor = [], None
    while not pages or cursor is not None:
        response = await describe(broker, limit=2, cursor=cursor)
        pages.append(rows(response))
        cursor = next_of(response)
    assert pages == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("c", [0, 1])]]


async def test_the_broker_limits_pages_too(broker: LogsBroker) -> None:
    """The client's limit of 0 still returns one partition."""
    broker.create("a", partitions=3)
    assert rows(await describe(broker, limit=0)) == [("a", [0])]
    broker.options = BROKER_OPTIONS.parse({"max.request.partition.size.limit": "2"})
    response = await describe(broker)
    assert (rows(response), next_of(response)) == ([("a", [0, 1])], ("a", 2))


async def test_unknown_topics_have_an_error(broker: LogsBroker) -> None:
    """Unknown topics do not count towards the size of the page."""
    broker.create("t")
    response = await describe(broker, "a", "a b", "t", limit=1)
    assert [topic.error_code for topic in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        0,
    ]
    assert next_of(response) is None


async def test_deleted_topic_of_the_cursor_is_skipped(broker: LogsBroker) -> None:
    """The topic or the partition of the cursor may have been deleted."""
    broker.create("a")
    broker.create("c")
    assert rows(await describe(broker, cursor=("b", 1))) == [("c", [0])]
    assert rows(await describe(broker, cursor=("a", 5))) == [("a", []), ("c", [0])]


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
async def test_invalid_cursor_is_rejected(broker: LogsBroker, cursor: tuple[str, int]) -> None:
    """Its topic must be one of the requested topics, and its partition at least 0."""
    broker.create("a")
    (topic,) = (await describe(broker, "a", cursor=cursor)).topics
    assert (topic.name, topic.error_code) == ("a", ErrorCode.INVALID_REQUEST)


async def test_dead_leader_is_not_returned(broker: LogsBroker) -> None:
    """A partition whose leader is dead has leader -1."""
    broker.create("t", leader=GONE, replicas=(GONE, OTHER))
    (partition,) = (await describe(broker, "t")).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, -1)
    assert (partition.replica_nodes, partition.offline_replicas) == ([GONE, OTHER], [GONE])


async def test_unknown_topics_fill_a_page(broker: LogsBroker) -> None:
    """They have no partitions, but a page has no more of them than it may have partitions."""
    broker.options = BROKER_OPTIONS.parse({"max.request.partition.size.limit": "3"})
    names = [f"none-{number}" for number in range(5)]
    response = await describe(broker, *names)
    assert (rows(response), next_of(response)) == (
        [(name, []) for name in names[:3]],
        ("none-3", 0),
    )
    rest = await describe(broker, *names, cursor=("none-3", 0))
    assert (rows(rest), next_of(rest)) == ([(name, []) for name in names[3:]], None)


async def test_large_request_keeps_the_topics_of_its_page(broker: LogsBroker) -> None:
    """The page, and its cursor, apply to the whole request."""
    broker.options = BROKER_OPTIONS.parse({"max.request.partition.size.limit": "2"})
    names = [f"t{number}" for number in range(9)]
    for name in names[::2]:
        broker.create(name)
    for cursor in (None, ("t3", 0), ("t8", 0)):
        whole = await describe(broker, *reversed(names), cursor=cursor)
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in reversed(names)],
            response_partition_limit=2000,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        describe_topic_partitions.prepare(request, broker.context(describe_topic_partitions, 0))
        assert len(request.topics) <= 5
        assert await broker.ask(describe_topic_partitions, request, 0) == whole

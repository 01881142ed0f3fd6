"""CreatePartitions: added partitions, and rejected requests."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import create_partitions
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.handlers.admin import AdminBroker, admin_broker


def grow(name: str, count: int, *replicas: int) -> CreatePartitionsTopic:
    """Return a topic to extend; each of `replicas` is the broker of one new partition."""
    assignments = [CreatePartitionsAssignment(broker_ids=[item]) for item in replicas]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)


async def create(
    broker: AdminBroker, *topics: CreatePartitionsTopic, **fields: object
) -> list[CreatePartitionsTopicResult]:
    """Create a topic `t` of two partitions, add partitions, and return the results."""
    await broker.controller.create_topics([TopicRequest("t", 2, 1)])
    fields.setdefault("timeout_ms", 10_000)
    request = CreatePartitionsRequest(topics=list(topics), **fields)
    return (await create_partitions.handle(broker.context(3), request)).results


@pytest.mark.parametrize("asked", [grow("t", 4), grow("t", 4, 1, 1)], ids=["placed", "assigned"])
async def test_new_partitions_have_leaders_when_the_response_is_sent(
    asked: CreatePartitionsTopic,
) -> None:
    """The partitions have leaders, with and without an assignment in the request."""
    async with admin_broker() as broker:
        (result,) = await create(broker, asked)
        assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
        assert [item.leader for item in broker.image.topics["t"].partitions] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (grow("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grow("t", 2), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 1), ErrorCode.INVALID_PARTITIONS),
        (grow("t", 4, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grow("t", 3, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_rejected_topic_has_a_code_and_a_reason(
    asked: CreatePartitionsTopic, code: ErrorCode
) -> None:
    """A rejected topic is not changed."""
    async with admin_broker() as broker:
        (result,) = await create(broker, asked)
        assert result.error_code == code
        assert result.error_message
        assert len(broker.image.topics["t"].partitions) == 2


async def test_repeated_topic_is_rejected() -> None:
    """The intended number would be ambiguous."""
    async with admin_broker() as broker:
        results = await create(broker, grow("t", 3), grow("t", 4))
        assert [item.error_code for item in results] == [ErrorCode.INVALID_REQUEST]


async def test_validate_only_creates_nothing() -> None:
    """All checks run with validate_only."""
    async with admin_broker() as broker:
        results = await create(broker, grow("t", 9), grow("nope", 9), validate_only=True)
        codes = [item.error_code for item in results]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert len(broker.image.topics["t"].partitions) == 2


async def test_request_without_timeout_creates_nothing() -> None:
    """The error is REQUEST_TIMED_OUT at once, as in Kafka 4."""
    async with admin_broker() as broker:
        (result,) = await create(broker, grow("t", 9), timeout_ms=0)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert len(broker.image.topics["t"].partitions) == 2


async def test_too_many_partitions_in_all_topics_together() -> None:
    """The whole request is refused, as in KRaft; existing partitions do not count."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("u", 2, 1)])
        results = await create(broker, grow("t", 6002), grow("u", 4003))
        assert [(item.name, item.error_code) for item in results] == [
            (name, ErrorCode.POLICY_VIOLATION) for name in "tu"
        ]
        results = await create(broker, grow("t", 6002), grow("u", 4002), validate_only=True)
        assert [item.error_code for item in results] == [0, 0]

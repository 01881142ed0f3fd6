"""ElectLeaders: preferred and unclean elections, and the error of every partition."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import elect_leaders
from ottla.wire import schema
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.handlers.admin import AdminBroker, admin_broker

PREFERRED, UNCLEAN = 0, 1


async def elect(
    broker: AdminBroker,
    *partitions: tuple[str, int],
    kind: int = PREFERRED,
    version: int = 2,
    timeout_ms: int = 1000,
) -> tuple[str, dict[tuple[str, int], str]]:
    """Elect leaders, of all partitions if none is given; return the names of all errors."""
    topics = [TopicPartitions(topic=topic, partitions=[number]) for topic, number in partitions]
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=topics or None, timeout_ms=timeout_ms
    )
    data = schema.encode(request, version)
    decoded, _ = schema.decode(ElectLeadersRequest, version, data)
    response = await elect_leaders.handle(broker.context(version), decoded)
    answer: Any = schema.decode(type(response), version, schema.encode(response, version))[0]
    return ErrorCode(answer.error_code).name, {
        (topic.topic, item.partition_id): ErrorCode(item.error_code).name
        for topic in answer.replica_election_results
        for item in topic.partition_result
    }


async def two_brokers(broker: AdminBroker) -> None:
    """Add broker 2, and topic `t` whose preferred leader it is; then kill broker 2."""
    await broker.world.start(2)
    await broker.world.until(lambda: 2 in broker.image.brokers)
    topic = TopicRequest("t", assignments=((0, (2, 1)),))
    (result,) = await broker.controller.create_topics([topic])
    assert result.error is None
    await broker.world.kill(2)
    await broker.world.until(lambda: broker.image.partition("t", 0).leader == 1)


async def return_of_broker_2(broker: AdminBroker) -> None:
    """Start broker 2 again."""
    await broker.world.start(2)
    await broker.world.until(lambda: 2 in broker.image.brokers)


@pytest.mark.parametrize("version", range(elect_leaders.MAX_VERSION + 1))
async def test_partitions_with_their_preferred_leader_need_no_election(version: int) -> None:
    """Each requested partition has a result, also unknown ones."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 2, 1)])
        answered = await elect(broker, ("t", 0), ("t", 9), ("no", 0), version=version)
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        not_needed = "ELECTION_NOT_NEEDED"
        assert answered == (
            "NONE",
            {("t", 0): not_needed, ("t", 9): unknown, ("no", 0): unknown},
        )


async def test_only_elections_are_returned_for_all_partitions() -> None:
    """Null selects all partitions; topics without an election have no partition results."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 2, 1)])
        assert await elect(broker) == ("NONE", {})
        assert await elect(broker, kind=UNCLEAN) == ("NONE", {})
        request = ElectLeadersRequest(topic_partitions=None)
        response = await elect_leaders.handle(broker.context(2), request)
        (topic,) = response.replica_election_results
        assert (topic.topic, topic.partition_result) == ("t", [])


async def test_dead_or_lagging_preferred_leader_is_not_elected() -> None:
    """When broker 2 is back, it has to catch up first."""
    async with admin_broker() as broker:
        await two_brokers(broker)
        refused = ("NONE", {("t", 0): "PREFERRED_LEADER_NOT_AVAILABLE"})
        assert await elect(broker, ("t", 0)) == refused
        await return_of_broker_2(broker)
        assert await elect(broker, ("t", 0)) == refused
        assert await elect(broker) == refused
        answered = await elect(broker, ("t", 0), kind=UNCLEAN)
        assert answered == ("NONE", {("t", 0): "ELECTION_NOT_NEEDED"})


@pytest.mark.parametrize(
    ("kind", "timeout_ms", "code"),
    [(7, 1000, "INVALID_REQUEST"), (PREFERRED, 0, "REQUEST_TIMED_OUT")],
)
async def test_rejected_request_has_the_error_everywhere(
    kind: int, timeout_ms: int, code: str
) -> None:
    """Old versions have no top-level error code."""
    async with admin_broker() as broker:
        answered = await elect(broker, ("t", 0), kind=kind, timeout_ms=timeout_ms)
        assert answered == (code, {("t", 0): code})
        if kind == PREFERRED:
            answered = await elect(broker, ("t", 0), version=0, timeout_ms=timeout_ms)
            assert answered == ("NONE", {("t", 0): code})


async def test_topic_without_partitions_is_in_the_response() -> None:
    """The topic has no partition results, as in Kafka."""
    async with admin_broker() as broker:
        topics = [TopicPartitions(topic="t", partitions=[])]
        request = ElectLeadersRequest(topic_partitions=topics, timeout_ms=1000)
        response = await elect_leaders.handle(broker.context(2), request)
        (result,) = response.replica_election_results
        assert (result.topic, result.partition_result) == ("t", [])

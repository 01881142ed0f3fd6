"""AlterPartitionReassignments: partitions move between brokers that live."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import PartitionImage
from ottla.controller.planning import reassignment
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import alter_partition_reassignments
from ottla.wire import schema
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.handlers.admin import AdminBroker, admin_broker

VERSIONS = range(alter_partition_reassignments.MAX_VERSION + 1)


async def reassign(
    broker: AdminBroker,
    *moves: tuple[str, int, list[int] | None],
    version: int = 1,
    **fields: Any,
) -> tuple[str, dict[tuple[str, int], str]]:
    """Ask for moves (topic, partition, replicas); return the names of all errors."""
    topics = [
        ReassignableTopic(
            name=topic,
            partitions=[ReassignablePartition(partition_index=number, replicas=replicas)],
        )
        for topic, number, replicas in moves
    ]
    request = AlterPartitionReassignmentsRequest(topics=topics, **fields)
    data = schema.encode(request, version)
    decoded, _ = schema.decode(AlterPartitionReassignmentsRequest, version, data)
    response = await alter_partition_reassignments.handle(broker.context(version), decoded)
    answer: Any = schema.decode(type(response), version, schema.encode(response, version))[0]
    return ErrorCode(answer.error_code).name, {
        (topic.name, item.partition_index): ErrorCode(item.error_code).name
        for topic in answer.responses
        for item in topic.partitions
    }


async def second_broker(broker: AdminBroker) -> None:
    """Add broker 2."""
    await broker.world.start(2)
    await broker.world.until(lambda: 2 in broker.image.brokers)


def partition(broker: AdminBroker, topic: str = "t") -> PartitionImage:
    """Return partition 0 as the broker has been told."""
    found = broker.image.partition(topic, 0)
    assert isinstance(found, PartitionImage)
    return found


@pytest.mark.parametrize("version", VERSIONS)
async def test_on_one_broker_a_partition_stays_where_it_is(version: int) -> None:
    """A target that is there already is no error, and no step in the epochs."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 1, 1)])
        assert await reassign(broker, ("t", 0, [1]), version=version) == (
            "NONE",
            {("t", 0): "NONE"},
        )
        assert partition(broker).leader_epoch == 0
        answered = await reassign(
            broker, ("t", 0, [2]), ("t", 1, [1]), ("no", 0, [1]), ("no", 1, None), version=version
        )
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        assert answered == (
            "NONE",
            {
                ("t", 0): "INVALID_REPLICA_ASSIGNMENT",
                ("t", 1): unknown,
                ("no", 0): unknown,
                ("no", 1): unknown,
            },
        )


async def test_a_move_begins_and_is_cancelled() -> None:
    """Brokers have been told of it when the answer comes; what was added goes again."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 1, 1)])
        await second_broker(broker)
        assert await reassign(broker, ("t", 0, None)) == (
            "NONE",
            {("t", 0): "NO_REASSIGNMENT_IN_PROGRESS"},
        )
        assert await reassign(broker, ("t", 0, [2])) == ("NONE", {("t", 0): "NONE"})
        found = partition(broker)
        assert (found.replicas, found.adding_replicas, found.removing_replicas) == (
            (2, 1),
            (2,),
            (1,),
        )
        assert ("leaders", ["t-0@1"]) in broker.world.port(2).calls
        assert await reassign(broker, ("t", 0, None)) == ("NONE", {("t", 0): "NONE"})
        assert partition(broker).replicas == (1,)
        assert broker.world.port(2).calls[-1] == ("delete", [("t", 0)])


async def test_replicas_that_are_too_many_go() -> None:
    """The next controller finds what was decided."""
    async with admin_broker() as broker:
        await second_broker(broker)
        await broker.controller.create_topics([TopicRequest("t", assignments=((0, (2, 1)),))])
        assert await reassign(broker, ("t", 0, [1])) == ("NONE", {("t", 0): "NONE"})
        found = partition(broker)
        assert (found.replicas, found.leader, found.isr) == ((1,), 1, (1,))
        assert ("delete", [("t", 0)]) in broker.world.port(2).calls
        await broker.world.kill(1)
        await broker.world.until(lambda: broker.world.controllers[2].is_active)
        image = broker.world.controllers[2].image
        assert image.partition("t", 0).replicas == (1,)


async def test_many_moves_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every partition is answered and moved all the same."""
    monkeypatch.setattr(reassignment, "MOVES_MAX", 2)
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 5, 1)])
        await second_broker(broker)
        moves = [("t", number, [2]) for number in range(5)]
        assert await reassign(broker, *moves) == ("NONE", {("t", n): "NONE" for n in range(5)})
        topic = broker.image.topic("t")
        assert [item.replicas for item in topic.partitions] == [(2, 1)] * 5


async def test_the_number_of_replicas_can_be_held() -> None:
    """Since version 1."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 1, 1)])
        await second_broker(broker)
        answered = await reassign(broker, ("t", 0, [1, 2]), allow_replication_factor_change=False)
        assert answered == ("NONE", {("t", 0): "INVALID_REPLICATION_FACTOR"})
        assert partition(broker).replicas == (1,)


async def test_a_request_whose_time_is_up_says_so_everywhere() -> None:
    """The whole request and every partition have the code."""
    async with admin_broker() as broker:
        answered = await reassign(broker, ("t", 0, [1]), timeout_ms=0)
        assert answered == ("REQUEST_TIMED_OUT", {("t", 0): "REQUEST_TIMED_OUT"})


async def test_a_topic_of_which_nothing_is_asked_is_answered() -> None:
    """With no partition, as Kafka has it."""
    async with admin_broker() as broker:
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t")])
        response = await alter_partition_reassignments.handle(broker.context(1), request)
        assert [(item.name, item.partitions) for item in response.responses] == [("t", [])]

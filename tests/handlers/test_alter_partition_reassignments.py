"""AlterPartitionReassignments: partitions move between live brokers."""

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
    """Reassign (topic, partition, replicas); return the names of all errors."""
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
    """Return partition 0 as the broker knows it."""
    partition_image = broker.image.partition(topic, 0)
    assert isinstance(partition_image, PartitionImage)
    return partition_image


@pytest.mark.parametrize("version", VERSIONS)
async def test_reassignment_on_one_broker_changes_nothing(version: int) -> None:
    """A target equal to the current replicas is no error, and does not change the leader epoch."""
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


async def test_reassignment_begins_and_is_cancelled() -> None:
    """The brokers know of the move when the response is sent; a cancellation removes the new
    replicas.
    """
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 1, 1)])
        await second_broker(broker)
        assert await reassign(broker, ("t", 0, None)) == (
            "NONE",
            {("t", 0): "NO_REASSIGNMENT_IN_PROGRESS"},
        )
        assert await reassign(broker, ("t", 0, [2])) == ("NONE", {("t", 0): "NONE"})
        state = partition(broker)
        assert (state.replicas, state.adding_replicas, state.removing_replicas) == (
            (2, 1),
            (2,),
            (1,),
        )
        assert ("leaders", ["t-0@1"]) in broker.world.port(2).calls
        assert await reassign(broker, ("t", 0, None)) == ("NONE", {("t", 0): "NONE"})
        assert partition(broker).replicas == (1,)
        assert broker.world.port(2).calls[-1] == ("delete", [("t", 0)])


async def test_surplus_replicas_are_removed() -> None:
    """A later controller completes the removal."""
    async with admin_broker() as broker:
        await second_broker(broker)
        await broker.controller.create_topics([TopicRequest("t", assignments=((0, (2, 1)),))])
        assert await reassign(broker, ("t", 0, [1])) == ("NONE", {("t", 0): "NONE"})
        state = partition(broker)
        assert (state.replicas, state.leader, state.isr) == ((1,), 1, (1,))
        assert ("delete", [("t", 0)]) in broker.world.port(2).calls
        await broker.world.kill(1)
        await broker.world.until(lambda: broker.world.controllers[2].is_active)
        image = broker.world.controllers[2].image
        assert image.partition("t", 0).replicas == (1,)


async def test_many_reassignments_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every partition is moved and has a result."""
    monkeypatch.setattr(reassignment, "MOVES_MAX", 2)
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 5, 1)])
        await second_broker(broker)
        moves = [("t", number, [2]) for number in range(5)]
        assert await reassign(broker, *moves) == ("NONE", {("t", n): "NONE" for n in range(5)})
        topic = broker.image.topic("t")
        assert [item.replicas for item in topic.partitions] == [(2, 1)] * 5


async def test_replication_factor_can_be_fixed() -> None:
    """The field allow_replication_factor_change exists since version 1."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 1, 1)])
        await second_broker(broker)
        answered = await reassign(broker, ("t", 0, [1, 2]), allow_replication_factor_change=False)
        assert answered == ("NONE", {("t", 0): "INVALID_REPLICATION_FACTOR"})
        assert partition(broker).replicas == (1,)


async def test_timed_out_request_has_the_error_everywhere() -> None:
    """The response and every partition have the error code."""
    async with admin_broker() as broker:
        answered = await reassign(broker, ("t", 0, [1]), timeout_ms=0)
        assert answered == ("REQUEST_TIMED_OUT", {("t", 0): "REQUEST_TIMED_OUT"})


async def test_topic_without_partitions_is_in_the_response() -> None:
    """The topic has no partitions in the response, as in Kafka."""
    async with admin_broker() as broker:
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t")])
        response = await alter_partition_reassignments.handle(broker.context(1), request)
        assert [(item.name, item.partitions) for item in response.responses] == [("t", [])]

"""ListPartitionReassignments: the current reassignments."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import Reassignment, TopicRequest
from ottla.server.handlers import list_partition_reassignments
from ottla.wire import schema
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.handlers.admin import AdminBroker, admin_broker


async def under_way(broker: AdminBroker, *partitions: tuple[str, int]) -> Any:
    """List reassignments of single partitions, or all of them."""
    topics = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=[number])
        for name, number in partitions
    ]
    request = ListPartitionReassignmentsRequest(topics=topics or None)
    decoded, _ = schema.decode(type(request), 0, schema.encode(request, 0))
    response = list_partition_reassignments.handle(broker.context(0), decoded)
    return schema.decode(type(response), 0, schema.encode(response, 0))[0]


def rows(response: Any) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    """Return topic, partition, replicas, added and removed replicas."""
    return [
        (
            topic.name,
            item.partition_index,
            item.replicas,
            item.adding_replicas,
            item.removing_replicas,
        )
        for topic in response.topics
        for item in topic.partitions
    ]


async def test_current_reassignments_are_listed() -> None:
    """They are listed for all topics or for partitions by name; other partitions are omitted."""
    async with admin_broker() as broker:
        await broker.controller.create_topics([TopicRequest("t", 2, 1), TopicRequest("u", 1, 1)])
        assert rows(await under_way(broker)) == []
        await broker.world.start(2)
        await broker.world.until(lambda: 2 in broker.image.brokers)
        await broker.controller.reassign([Reassignment("t", 1, (2,))])
        move = ("t", 1, [2, 1], [2], [1])
        response = await under_way(broker)
        assert (response.error_code, response.error_message, rows(response)) == (0, None, [move])
        assert rows(await under_way(broker, ("t", 1), ("u", 0), ("no", 0))) == [move]
        assert rows(await under_way(broker, ("t", 0), ("t", 9))) == []


async def test_only_the_controller_answers() -> None:
    """Another broker returns an error."""
    async with admin_broker() as broker:
        controller = broker.controller
        await controller.stop()
        response = await under_way(broker)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        assert response.error_message

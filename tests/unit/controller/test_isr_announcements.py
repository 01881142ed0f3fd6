"""Changes of the ISR are announced to all brokers together, and decided at once."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.controller.loop import Controller
from ottla.controller.planning.isr_changes import IsrRequest, IsrResult
from ottla.controller.planning.requests import TopicRequest
from tests.unit.controller.conftest import World

PARTITIONS = 6


async def started(world: World) -> Controller:
    """Return the controller of three brokers with a topic that all of them have."""
    for broker_id in (1, 2, 3):
        await world.start(broker_id)
    controller = world.controllers[1]
    async with asyncio.timeout(10):
        while len(controller.image.brokers) < 3:
            await asyncio.sleep(0)
    await controller.create_topics([TopicRequest("t", PARTITIONS, 3)])
    return controller


async def shrink(controller: Controller, number: int) -> IsrResult:
    """Propose a partition's leader as the only member of its ISR."""
    topic = controller.image.topics["t"]
    partition = topic.partitions[number]
    leader = controller.image.brokers[partition.leader]
    proposal = IsrRequest(
        topic_id=topic.topic_id,
        partition=number,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=((leader.id, leader.epoch),),
    )
    (result,) = await controller.alter_partitions(leader.id, leader.epoch, [proposal])
    return result


async def test_isr_changes_of_a_moment_are_announced_together(world: World) -> None:
    """The first change is announced at once, and all that follow it soon in one update."""
    controller = await started(world)
    world.port(3).calls.clear()
    for number in range(PARTITIONS):
        result = await shrink(controller, number)
        assert result.error is ErrorCode.NONE
        assert result.partition is not None
        assert len(result.partition.isr) == 1
    async with asyncio.timeout(10):
        while any(len(item.isr) > 1 for item in world.port(3).image.topics["t"].partitions):
            await asyncio.sleep(0)
    assert world.port(3).calls == [("metadata", ["t"])] * 2

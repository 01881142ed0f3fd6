"""Processes that end while the coordination cannot be reached; their sessions are not awaited."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.controller.loop import Controller
from ottla.controller.planning.requests import TopicRequest
from tests.unit.controller.conftest import World
from tests.unit.controller.test_loop import session_of


async def end_process(world: World, broker_id: int) -> None:
    """End a broker's process; its watches notice it once, and its registration stays."""
    port = world.port(broker_id)
    port.failures = [ErrorCode.BROKER_NOT_AVAILABLE] * 10_000
    port.is_gone.set()
    for _ in range(20):
        await asyncio.sleep(0)
    port.is_gone.clear()


async def suspend(*controllers: Controller) -> None:
    for controller in controllers:
        session_of(controller).suspend()
    await asyncio.sleep(0)


async def test_controller_elects_leaders_for_a_process_that_ended_meanwhile(world: World) -> None:
    """The controller reads the tree again, where the broker is still registered."""
    first = await world.start(1)
    await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    await first.create_topics([TopicRequest("t", assignments=((0, (2, 1)),))])
    await suspend(first)
    await end_process(world, 2)
    session_of(first).resume()
    await world.until(lambda: first.is_active and 2 not in first.image.brokers)
    assert first.image.topics["t"].partitions[0].leader == 1


async def test_broker_that_is_back_keeps_its_place(world: World) -> None:
    """A broker that proves to be the same process counts as live in the new term."""
    first = await world.start(1)
    await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    await suspend(first)
    await end_process(world, 2)
    world.port(2).failures = []
    session_of(first).resume()
    await world.until(lambda: first.is_active and 2 in first.image.brokers)
    assert 1 in first.image.brokers


async def test_role_is_taken_over_although_the_successor_was_suspended(world: World) -> None:
    """A successor whose session is suspended when the process ends takes the role after it has
    resumed.
    """
    first = await world.start(1)
    second = await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    await first.create_topics([TopicRequest("t", assignments=((0, (1, 2)),))])
    await suspend(second)
    await first.stop()
    await end_process(world, 1)
    session_of(second).resume()
    await world.until(lambda: second.is_active)
    await world.until(lambda: second.image.topics["t"].partitions[0].leader == 2)
    assert second.image.topics["t"].partitions[0].leader_epoch == 1

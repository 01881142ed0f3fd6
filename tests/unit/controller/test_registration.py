"""The registration of a broker: its former process, another one with its id, and its removal."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.cluster.image import NO_EPOCH, BrokerImage, Endpoint
from ottla.cluster.zk.embedded import EmbeddedSession, EmbeddedTree
from ottla.cluster.zk.port import Create, Delete
from ottla.cluster.znodes import BrokerIdNode, ControllerNode
from ottla.controller import registration, state
from ottla.controller.loop import Controller
from ottla.controller.planning.registrations import IdInUse
from tests.unit.controller.conftest import World
from tests.unit.controller.test_loop import session_of

_BROKER = BrokerImage(1, "127.0.0.1", 9092)


@pytest.fixture
def tree() -> EmbeddedTree:
    """A tree in memory."""
    return EmbeddedTree(RealFileSystem(), RealClock())


def recorded(*sessions: EmbeddedSession) -> list[tuple[int, int]]:
    """Return the record of registrations at time 0."""
    return [(session.session_id, 0) for session in sessions]


async def test_broker_replaces_the_registration_of_its_former_process(tree: EmbeddedTree) -> None:
    """The new registration has a higher epoch and belongs to the new session."""
    former, session = tree.session(), tree.session()
    first = await registration.register(former, _BROKER, 0)
    second = await registration.register(session, _BROKER, 0, 0.0, recorded(former, session))
    stat = await session.exists(BrokerIdNode.path(1))
    assert stat is not None
    assert (stat.ephemeral_owner, stat.czxid) == (session.session_id, second)
    assert second > first
    former.expire()
    assert await session.exists(BrokerIdNode.path(1)) == stat


@pytest.mark.parametrize("step", ["get", "multi"])
async def test_former_session_ends_during_the_registration(
    tree: EmbeddedTree, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The node was there at first and is missing later: it is created."""
    former, session = tree.session(), tree.session()
    await registration.register(former, _BROKER, 0)
    perform = getattr(session, step)

    async def perform_late(*arguments: Any) -> Any:
        former.expire()
        return await perform(*arguments)

    monkeypatch.setattr(session, step, perform_late)
    epoch = await registration.register(session, _BROKER, 0, 0.0, recorded(former))
    stat = await session.exists(BrokerIdNode.path(1))
    assert stat is not None
    assert (stat.ephemeral_owner, stat.czxid) == (session.session_id, epoch)


async def test_role_of_the_former_process_is_free_at_once(tree: EmbeddedTree) -> None:
    """A controller that was killed and started again can be elected before its session expires."""
    former, session = tree.session(), tree.session()
    await registration.register(former, _BROKER, 0)
    await state.elect(former, 1, 0, lambda _: None)
    await registration.register(session, _BROKER, 0, 0.0, recorded(former))
    assert await session.exists(ControllerNode.PATH) is None
    assert isinstance(await state.elect(session, 1, 0, lambda _: None), state.Term)


async def test_role_of_another_broker_is_left_alone(tree: EmbeddedTree) -> None:
    """The registration removes only the nodes of the broker's own former process."""
    other, former, session = tree.session(), tree.session(), tree.session()
    await registration.register(other, replace(_BROKER, id=2, port=9093), 0, 1.0)
    await state.elect(other, 2, 0, lambda _: None)
    await registration.register(former, _BROKER, 0)
    await registration.register(session, _BROKER, 0, 0.0, recorded(former))
    assert await session.exists(ControllerNode.PATH) is not None


async def test_address_of_another_broker_is_refused(tree: EmbeddedTree) -> None:
    """Clients would reach only one of two brokers that advertise the same address."""
    other, session = tree.session(), tree.session()
    await registration.refuse_shared_addresses(session, _BROKER)
    await registration.register(other, _BROKER, 0, 1.0)
    await registration.refuse_shared_addresses(session, _BROKER)
    await registration.refuse_shared_addresses(session, replace(_BROKER, id=2, port=9093))
    inside = Endpoint("INSIDE", "10.0.0.1", 9093)
    outside = Endpoint("OUTSIDE", "127.0.0.1", 9092)
    copied = replace(_BROKER, id=2, port=9093, endpoints=(inside, outside))
    with pytest.raises(ConfigError) as refused:
        await registration.refuse_shared_addresses(session, copied)
    assert str(refused.value).startswith(
        "Configured end points 127.0.0.1:9092 in advertised listeners are already registered by "
        "broker 1"
    )
    other.expire()
    await registration.refuse_shared_addresses(session, copied)


async def test_live_broker_is_not_replaced_by_another_with_its_id_and_address(
    tree: EmbeddedTree,
) -> None:
    """The newcomer may have a copy of its configuration: it waits, and is refused."""
    other, session = tree.session(), tree.session()
    first = await registration.register(other, _BROKER, 86_400_000)
    for seconds in (0.0, 0.01):
        with pytest.raises(IdInUse) as refused:
            await registration.register(session, _BROKER, 0, seconds, recorded(session))
        assert "127.0.0.1:9092 has it since 1970-01-02T00:00:00Z" in str(refused.value)
    stat = await session.exists(BrokerIdNode.path(1))
    assert stat is not None
    assert stat.czxid == first


async def test_registration_waits_for_the_end_of_another_session(tree: EmbeddedTree) -> None:
    """The other process may have been killed on a machine that is gone."""
    other, session = tree.session(), tree.session()
    first = await registration.register(other, _BROKER, 0)
    waiting = asyncio.ensure_future(registration.register(session, _BROKER, 0, 60.0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    other.expire()
    assert await waiting > first


async def watched(world: World) -> tuple[Controller, list[ConfigError]]:
    """Start broker 1; return its controller, and the errors that depose it."""
    errors: list[ConfigError] = []
    world.on_deposed = errors.append
    return await world.start(1), errors


async def test_broker_registers_again_if_its_registration_was_removed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It was removed by an operator, and no other process has the id."""
    controller, errors = await watched(world)
    former = controller.broker_epoch
    await world.tree.session().delete(BrokerIdNode.path(1))
    await world.until(lambda: controller.broker_epoch > former and controller.is_active)
    assert not errors
    assert controller.registered(1, controller.broker_epoch)
    assert "registration was removed" in caplog.text
    assert [record.levelname for record in caplog.records if "removed" in record.msg] == ["ERROR"]


async def test_broker_that_another_process_has_replaced_ends(world: World) -> None:
    """It gives up the controller's role, and reports one sentence that names both."""
    controller, errors = await watched(world)
    session = world.tree.session()
    path, content = BrokerIdNode.path(1), BrokerIdNode.encode(_BROKER, 86_400_000)
    await session.multi([Delete(path), Create(path, content, ephemeral=True)])
    await world.until(lambda: errors)
    (error,) = errors
    assert "another process, at 127.0.0.1:9092, at 1970-01-02" in str(error)
    assert "the broker at 127.0.0.1:9001 no longer belongs to the cluster" in str(error)
    assert not controller.is_active
    assert controller.broker_epoch == NO_EPOCH
    for _ in range(100):
        await asyncio.sleep(0)
    assert await session.exists(ControllerNode.PATH) is not None
    assert not controller.is_active


async def test_broker_that_lost_its_session_ends_if_another_process_has_the_id(
    world: World,
) -> None:
    """It does not wait for the end of the other session, as a broker that starts does."""
    controller, errors = await watched(world)
    session_of(controller).suspend()
    other = world.tree.session()
    await world.tree.session().delete(BrokerIdNode.path(1))
    await registration.register(other, _BROKER, 0)
    session_of(controller).expire()
    await world.until(lambda: errors)
    assert "127.0.0.1:9001 no longer belongs" in str(errors[0])

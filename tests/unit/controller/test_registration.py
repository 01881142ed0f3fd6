"""The registration of a broker whose former process has ended while its session has not."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.znodes import BrokerIdNode, ControllerNode
from ottla.controller import state

_BROKER = BrokerImage(1, "127.0.0.1", 9092)


@pytest.fixture
def tree() -> EmbeddedTree:
    """A tree in memory."""
    return EmbeddedTree(RealFileSystem(), RealClock())


async def test_broker_replaces_the_registration_of_its_former_process(tree: EmbeddedTree) -> None:
    """The new registration has a higher epoch and belongs to the new session."""
    former, session = tree.session(), tree.session()
    first = await state.register(former, _BROKER, 0, 1.0)
    second = await state.register(session, _BROKER, 0, 1.0)
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
    await state.register(former, _BROKER, 0, 1.0)
    perform = getattr(session, step)

    async def perform_late(*arguments: Any) -> Any:
        former.expire()
        return await perform(*arguments)

    monkeypatch.setattr(session, step, perform_late)
    epoch = await state.register(session, _BROKER, 0, 1.0)
    stat = await session.exists(BrokerIdNode.path(1))
    assert stat is not None
    assert (stat.ephemeral_owner, stat.czxid) == (session.session_id, epoch)


async def test_role_of_the_former_process_is_free_at_once(tree: EmbeddedTree) -> None:
    """A controller that was killed and started again can be elected before its session expires."""
    former, session = tree.session(), tree.session()
    await state.register(former, _BROKER, 0, 1.0)
    await state.elect(former, 1, 0, lambda _: None)
    await state.register(session, _BROKER, 0, 1.0)
    assert await session.exists(ControllerNode.PATH) is None
    assert isinstance(await state.elect(session, 1, 0, lambda _: None), state.Term)


async def test_role_of_another_broker_is_left_alone(tree: EmbeddedTree) -> None:
    """The registration removes only the nodes of the broker's own former process."""
    other, former, session = tree.session(), tree.session(), tree.session()
    await state.register(other, replace(_BROKER, id=2, port=9093), 0, 1.0)
    await state.elect(other, 2, 0, lambda _: None)
    await state.register(former, _BROKER, 0, 1.0)
    await state.register(session, _BROKER, 0, 1.0)
    assert await session.exists(ControllerNode.PATH) is not None


async def test_address_of_another_broker_is_refused(tree: EmbeddedTree) -> None:
    """Clients would reach only one of two brokers that advertise the same address."""
    other, session = tree.session(), tree.session()
    await state.refuse_shared_addresses(session, _BROKER)
    await state.register(other, _BROKER, 0, 1.0)
    await state.refuse_shared_addresses(session, _BROKER)
    await state.refuse_shared_addresses(session, replace(_BROKER, id=2, port=9093))
    inside = Endpoint("INSIDE", "10.0.0.1", 9093)
    outside = Endpoint("OUTSIDE", "127.0.0.1", 9092)
    copied = replace(_BROKER, id=2, port=9093, endpoints=(inside, outside))
    with pytest.raises(ConfigError) as refused:
        await state.refuse_shared_addresses(session, copied)
    assert str(refused.value).startswith(
        "Configured end points 127.0.0.1:9092 in advertised listeners are already registered by "
        "broker 1"
    )
    other.expire()
    await state.refuse_shared_addresses(session, copied)


async def test_live_broker_is_not_replaced_if_its_address_proves_nothing(
    tree: EmbeddedTree,
) -> None:
    """A broker on another machine may have the same id and loopback address."""
    other, session = tree.session(), tree.session()
    await state.wait_for_former_session(session, _BROKER, 1.0)
    await state.register(other, _BROKER, 0, 1.0)
    await state.wait_for_former_session(other, _BROKER, 1.0)
    with pytest.raises(ConfigError, match=r"node\.id 1 is registered already"):
        await state.wait_for_former_session(session, _BROKER, 0.01)
    waiting = asyncio.ensure_future(state.wait_for_former_session(session, _BROKER, 60.0))
    await asyncio.sleep(0)
    other.expire()
    await waiting

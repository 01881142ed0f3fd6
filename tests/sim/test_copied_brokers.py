"""Two processes with one broker id, in simulated time: only one of them belongs to the cluster."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.zk.port import Create, Delete
from ottla.cluster.znodes import BrokerIdNode
from ottla.controller.planning import registrations
from ottla.server.node import Node
from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import World

from .cluster import PORT, SESSION_SECONDS, SimCluster

pytestmark = pytest.mark.slow

SEEDS = range(3)


def run(seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3)))


async def start_a_copy(cluster: SimCluster, broker_id: int) -> Node:
    """Start a broker with the configuration of another on a machine of its own."""
    machine = cluster.world.machine("copy")
    settings = {
        "node.id": str(broker_id),
        "listeners": f"PLAINTEXT://0.0.0.0:{PORT}",
        "allow.insecure.listeners": "true",
        "advertised.listeners": f"PLAINTEXT://b{broker_id}:{PORT}",
        "log.dirs": "/data",
        "zookeeper.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
    }

    nodes = []

    async def live() -> None:
        node = node_on(machine, settings, cluster.coordination.access(machine.name))
        await node.start()
        nodes.append(node)

    await machine.start(live)
    return nodes[0]


async def refuse_a_copy(cluster: SimCluster) -> None:
    """Start a copy of broker 2, and fail unless it is refused and changes nothing."""
    await cluster.start()
    await cluster.create(1, "t", 3, 3)
    epoch = cluster.nodes[2].broker.controller.broker_epoch
    began = cluster.clock.monotonic()
    with pytest.raises(ConfigError) as refused:
        await start_a_copy(cluster, 2)
    assert cluster.clock.monotonic() - began > SESSION_SECONDS
    assert f"node.id 2 is registered already: the process at b2:{PORT}" in str(refused.value)
    assert cluster.nodes[2].broker.controller.broker_epoch == epoch
    assert cluster.agrees("t", count=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copied_configuration_is_refused_while_the_session_of_the_other_lives(seed: int) -> None:
    """The registered broker keeps its epoch and its leaders; the error names both addresses."""
    run(seed, refuse_a_copy)


def test_a_copy_that_takes_over_a_registration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: every other registration counts as one of an earlier process."""
    monkeypatch.setattr(registrations, "verdict", lambda *_: registrations.Verdict.FORMER)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run(0, refuse_a_copy)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copied_broker_registers_when_the_session_of_the_other_has_ended(seed: int) -> None:
    """The killed broker finds the id taken when it starts again, and is refused."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        cluster.kill(2)
        copy = await start_a_copy(cluster, 2)
        assert copy.broker.controller.broker_epoch > 0
        with pytest.raises(ConfigError, match=r"node\.id 2 is registered already"):
            await cluster.begin(2)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_that_another_process_has_replaced_stops_serving(seed: int) -> None:
    """Its failure names both, clients cannot connect any more, and another broker leads."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        deposed = cluster.nodes[1]
        session = cluster.coordination.access("copy").session()
        path = BrokerIdNode.path(1)
        content, stat = await session.get(path)
        await session.multi([Delete(path, stat.version), Create(path, content, ephemeral=True)])
        await cluster.until(lambda: deposed.failure is not None, seconds=1)
        assert "node.id 1 was registered by another process" in str(deposed.failure)
        await cluster.until(lambda: cluster.controllers not in ([], [1]), seconds=2)
        await session.close()

        async def is_refused() -> bool:
            try:
                (await cluster.connect(1)).close()
            except OSError:
                return True
            return False

        while not await is_refused():
            await cluster.clock.sleep(0.1)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_whose_registration_was_removed_registers_again(seed: int) -> None:
    """An operator has removed it; every replica is in sync again."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        for broker_id in (3, 1):
            epoch = cluster.nodes[broker_id].broker.controller.broker_epoch
            session = cluster.coordination.access("operator").session()
            await session.delete(BrokerIdNode.path(broker_id))
            await cluster.until(
                lambda broker_id=broker_id, epoch=epoch: (  # type: ignore[misc]
                    cluster.nodes[broker_id].broker.controller.broker_epoch > epoch
                    and not cluster.problems()
                )
            )
        assert cluster.coordination.tree.nodes.keys() >= {BrokerIdNode.path(n) for n in (1, 2, 3)}

    run(seed, scenario)

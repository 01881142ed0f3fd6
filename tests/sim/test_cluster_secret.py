"""The secret of brokers is replaced while a simulated cluster runs."""

from typing import Any

import pytest

from ottla.base.rng import SeededRng
from ottla.server.brokers.channels import Channels
from ottla.server.config.store import ConfigResource
from ottla.testing.sim.world import World
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from .cluster import PORT, SimCluster

SEEDS = range(3)
OVERLAP_S = 600.0


class Former:
    """The secret as a broker knows it that has missed the replacement, or as a thief knows it."""

    def __init__(self, keys: dict[int, bytes]) -> None:
        self._keys = keys

    def valid_keys(self) -> dict[int, bytes]:
        return self._keys


async def replace_secret(cluster: SimCluster, generation: int) -> None:
    """Raise the option, and wait until every broker has the new secret."""
    change = AlterableConfig(name="inter.broker.secret.generation", value=str(generation))
    resource = AlterConfigsResource(resource_type=ConfigResource.BROKER, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = await cluster.ask(1, request, 1, IncrementalAlterConfigsResponse)
    assert [row.error_code for row in response.responses] == [0], response
    await cluster.until(lambda: all(generation in keys(cluster, number) for number in cluster.ids))


def keys(cluster: SimCluster, broker_id: int) -> dict[int, bytes]:
    """Return the keys that a broker accepts."""
    secret: Any = cluster.nodes[broker_id].broker.secret
    return dict(secret.valid_keys())


async def is_accepted(cluster: SimCluster, secret: Former) -> bool:
    """Return True if broker 2 accepts this secret from a broker with the id 1."""
    channels = Channels(cluster.machine(1).net, SeededRng(1), 1, secret)
    channel = channels.open("b2", PORT, purpose="test")
    try:
        await channel.connect()
    except ConnectionError:
        return False
    channel.close()
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_secret_is_replaced_without_an_interruption(seed: int) -> None:
    """Both secrets are valid for a while; then the former one is refused. Replication continues."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        former = Former(keys(cluster, 1))
        assert await is_accepted(cluster, former)
        await replace_secret(cluster, 2)
        assert keys(cluster, 1) == keys(cluster, 2) == keys(cluster, 3)
        assert set(keys(cluster, 1)) == {1, 2}
        assert await is_accepted(cluster, former)
        await cluster.clock.sleep(OVERLAP_S + 1)
        assert set(keys(cluster, 2)) == {2}
        assert not await is_accepted(cluster, former)
        # All connections of brokers are new ones by now.
        assert (await cluster.create(1, "u", 3, 3)).topics[0].error_code == 0
        cluster.kill(3, expires=True)
        await cluster.start(3)
        await cluster.until(lambda: set(keys(cluster, 3)) == {2})
        assert (await cluster.create(cluster.controllers[0], "v", 1, 3)).topics[0].error_code == 0

    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3)))


def test_connection_that_was_proven_by_the_former_secret_is_closed() -> None:
    """A thief of the former secret does not keep its connection for ever."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        former = Former(keys(cluster, 1))
        await replace_secret(cluster, 2)
        channels = Channels(cluster.machine(1).net, SeededRng(1), 1, former)
        connection = await channels.open("b2", PORT, purpose="test").connect()
        await cluster.clock.sleep(OVERLAP_S / 2)
        assert not connection.is_lost
        await cluster.until(lambda: connection.is_lost, OVERLAP_S)
        assert set(keys(cluster, 2)) == {2}

    with World(1) as world:
        world.run(scenario(SimCluster(world, 3)))

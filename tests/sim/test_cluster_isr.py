"""Times at which replicas join and leave the ISR: moves, brokers that stop or return."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing.sim.world import World
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

from .cluster import SimCluster
from .test_cluster_replication import produce

pytestmark = pytest.mark.slow

SEEDS = range(4)
# Less than replica.fetch.wait.max.ms: no replica waits for the next fetch of a follower.
JOINING_SECONDS = 0.3


def is_complete(cluster: SimCluster) -> bool:
    """Return True if all brokers know that all replicas of topic `t` are in sync, and no move."""
    topics = [node.broker.image.topic("t") for node in cluster.nodes.values()]
    return all(
        topic is not None
        and all(
            set(partition.isr) == set(partition.replicas) and not partition.is_being_reassigned
            for partition in topic.partitions
        )
        for topic in topics
    )


async def reassign(cluster: SimCluster, moves: dict[int, list[int]]) -> None:
    """Ask the controller to move partitions of topic `t` to other brokers."""
    partitions = [
        ReassignablePartition(partition_index=number, replicas=target)
        for number, target in moves.items()
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=partitions)]
    )
    response = await cluster.ask(
        cluster.controllers[0], request, 1, AlterPartitionReassignmentsResponse
    )
    assert {item.error_code for item in response.responses[0].partitions} == {ErrorCode.NONE}


@pytest.mark.parametrize("stays", [True, False], ids=["growth", "move"])
@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_two_added_replicas_join_the_isr_at_once(seed: int, count: int, stays: bool) -> None:
    """The second follower joins when the first has joined, not some fetches later."""

    async def scenario() -> None:
        await cluster.start()
        await cluster.create(1, "t", count, 1)
        await cluster.clock.sleep(1.3)
        leaders = {number: cluster.leader("t", number) for number in range(count)}
        await reassign(
            cluster,
            {
                number: [leader] * stays + [key for key in cluster.ids if key != leader]
                for number, leader in leaders.items()
            },
        )
        await cluster.until(lambda: is_complete(cluster), JOINING_SECONDS)
        assert is_complete(cluster)

    with World(seed) as world:
        cluster = SimCluster(world, 3)
        world.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_two_brokers_that_return_join_every_isr_at_once(seed: int) -> None:
    """The replicas of two brokers that start at the same time do not wait for each other."""

    async def scenario() -> None:
        await cluster.start()
        await cluster.create(1, "t", 20, 3)
        others = [key for key in cluster.ids if key != cluster.controllers[0]]
        for key in others:
            cluster.kill(key)
        await cluster.clock.sleep(3.0)
        for start in [cluster.begin(key) for key in others]:
            await start
        await cluster.until(lambda: is_complete(cluster), JOINING_SECONDS)
        assert is_complete(cluster)

    with World(seed) as world:
        cluster = SimCluster(world, 3)
        world.run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_that_its_leader_does_not_know_yet_joins_when_the_leader_knows_it(
    seed: int,
) -> None:
    """A follower may fetch before its leader learns from the controller that it is alive."""

    async def scenario() -> None:
        await cluster.start()
        await cluster.create(1, "t", 9, 3)
        controller = cluster.controllers[0]
        unaware, returning = (key for key in cluster.ids if key != controller)
        await cluster.stop(returning)
        await cluster.clock.sleep(1.0)
        cluster.cut_from(unaware, [f"b{controller}"])
        await cluster.begin(returning)
        await cluster.clock.sleep(1.5)
        assert not is_complete(cluster)
        cluster.heal()
        current = cluster.nodes[unaware].broker.current
        await cluster.until(lambda: returning in current.image.brokers)
        await cluster.until(lambda: is_complete(cluster), JOINING_SECONDS)
        assert is_complete(cluster)

    with World(seed) as world:
        cluster = SimCluster(world, 3)
        world.run(scenario())


@pytest.mark.parametrize("is_controller", [True, False], ids=["controller", "other"])
@pytest.mark.parametrize("seed", SEEDS)
def test_broker_that_stops_is_not_proposed_for_the_isr_again(
    seed: int, is_controller: bool
) -> None:
    """The others serve acks=all at once: no record waits for a broker that has left the ISR."""

    async def scenario() -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        controller = cluster.controllers[0]
        stopping = next(key for key in cluster.ids if (key == controller) == is_controller)
        cluster.nodes[stopping].broker.replicas.get("t", 0)
        stopped = asyncio.ensure_future(cluster.stop(stopping))
        slowest = 0.0
        others = [key for key in cluster.ids if key != stopping]
        for number in range(200):
            started = cluster.clock.monotonic()
            while await produce(cluster, cluster.leader("t", 0), b"%d" % number):
                await cluster.clock.sleep(0.01)
            slowest = max(slowest, cluster.clock.monotonic() - started)
        await stopped
        assert slowest < JOINING_SECONDS
        refused = [cluster.nodes[key].broker.isr_updates.failures_count for key in others]
        assert refused == [0, 0]

    with World(seed) as world:
        cluster = SimCluster(world, 3)
        world.run(scenario())

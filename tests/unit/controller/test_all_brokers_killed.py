"""All brokers are killed at once and two of them restart, in simulated time."""

import pytest

from ottla.testing.sim.world import World
from tests.sim.cluster import SESSION_SECONDS, SimCluster

DELAYS = (0.3, 2.0, SESSION_SECONDS - 0.2, SESSION_SECONDS + 0.5)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(("seed", "age"), [(0, 5.0), (1, 5.0), (2, 0.5)])
def test_two_of_three_brokers_are_enough_after_all_were_killed(
    seed: int, age: float, delay: float
) -> None:
    """The first broker that restarts notices that the others have ended, although they are
    registered.

    Otherwise the last registered one becomes the only member of each ISR, without a process.
    """
    print(f"seed {seed}")

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        await cluster.clock.sleep(age)
        for broker_id in cluster.ids:
            cluster.kill(broker_id)
        await cluster.begin(1)
        await cluster.clock.sleep(delay)
        await cluster.begin(2)

        def is_led() -> bool:
            partitions = cluster.nodes[2].broker.image.topics["t"].partitions
            return all(item.leader in (1, 2) and set(item.isr) == {1, 2} for item in partitions)

        await cluster.until(is_led, seconds=5)
        assert is_led()

    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3, {"min.insync.replicas": "2"})))

"""Random faults, and then a cluster that recovers: one controller, a leader and a full ISR each."""

import pytest

from ottla.base.rng import Rng
from ottla.testing.sim.world import World

from .cluster import HOST, SESSION_SECONDS, SimCluster

pytestmark = pytest.mark.slow

SEEDS = range(20)
FAULTS = 12
PARTITIONS = 6
RECOVERY_SECONDS = 30.0


class Faults:
    """Draws one fault after the other; `log` has them for a test that fails."""

    def __init__(self, cluster: SimCluster, rng: Rng) -> None:
        self.log: list[tuple[str, int]] = []
        self._cluster = cluster
        self.rng = rng

    def _running(self) -> list[int]:
        nodes = self._cluster.nodes
        return [key for key in sorted(nodes) if nodes[key].has_broker]

    def _stopped(self) -> list[int]:
        return [key for key in self._cluster.ids if self._cluster.machine(key).is_off.is_set()]

    def strike(self) -> None:
        """Kill or cut off a broker, end or suspend its session, or heal the network."""
        running = self._running()
        victim = running[self.rng.below(len(running))] if running else 0
        fault = ("kill", "kill", "expire", "suspend", "cut", "heal", "wait")[self.rng.below(7)]
        self.log.append((fault, victim))
        if fault == "heal":
            self._cluster.heal()
        elif fault == "cut" and victim:
            others = [f"b{key}" for key in self._cluster.ids if key != victim]
            both_ways = bool(self.rng.below(2))
            self._cluster.isolate(victim, others, both_ways=both_ways)
        elif len(running) > 1:
            self._end(fault, victim)

    def _end(self, fault: str, victim: int) -> None:
        if fault == "kill":
            self._cluster.kill(victim, expires=bool(self.rng.below(2)))
        elif fault == "expire":
            self._cluster.coordination.expire(f"b{victim}")
        elif fault == "suspend":
            self._cluster.isolate(victim, [HOST])

    def start_some(self) -> None:
        """Start a broker that is down, half of the time."""
        stopped = self._stopped()
        if stopped and self.rng.below(2):
            self._cluster.begin(stopped[self.rng.below(len(stopped))])

    def end(self) -> None:
        """Heal everything, and start every broker that does not serve, as a supervisor does."""
        self._cluster.heal()
        for broker_id in self._cluster.ids:
            if not self._cluster.is_serving(broker_id):
                self._cluster.keep_running(broker_id)


def has_recovered(cluster: SimCluster) -> bool:
    """Return True if there is one controller, and every broker knows full ISRs with a leader."""
    nodes = [cluster.nodes.get(key) for key in cluster.ids]
    if not all(node is not None and node.has_broker for node in nodes):
        return False
    if len(cluster.controllers) != 1 or not cluster.agrees("t", count=PARTITIONS):
        return False
    topic = cluster.nodes[1].broker.image.topics["t"]
    return all(set(item.isr) == set(cluster.ids) for item in topic.partitions)


@pytest.mark.parametrize("seed", SEEDS)
def test_cluster_recovers_from_random_faults(seed: int) -> None:
    """The cluster recovers within 30 simulated seconds after all faults have ended."""
    print(f"seed {seed}")

    async def scenario(cluster: SimCluster) -> None:
        faults = Faults(cluster, cluster.world.stream("faults"))
        await cluster.start()
        await cluster.create(1, "t", PARTITIONS, 3)
        for _ in range(FAULTS):
            await cluster.clock.sleep(faults.rng.below(3000) / 1000)
            faults.strike()
            faults.start_some()
        faults.end()
        print(faults.log)
        await cluster.until(lambda: has_recovered(cluster), seconds=RECOVERY_SECONDS)
        cluster.close()

    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3)))


@pytest.mark.parametrize("cut_ms", range(0, 60, 6))
def test_a_start_waits_for_a_suspended_session(cut_ms: int) -> None:
    """The connection to the ensemble is lost while a broker starts, and comes back in time."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start(1)
        start = cluster.begin(2)
        await cluster.clock.sleep(cut_ms / 1000)
        cluster.isolate(2, [HOST])
        # The client suspends the session after two thirds of its time-out.
        await cluster.clock.sleep(0.75 * SESSION_SECONDS)
        cluster.heal()
        await start
        assert cluster.is_serving(2)

    with World(cut_ms) as world:
        world.run(scenario(SimCluster(world, 2)))

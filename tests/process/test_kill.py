"""Brokers that are killed with kill -9 under load: no record is lost, duplicated or reordered."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.broker_cluster import FAIL_OVER_S, BrokerCluster, wait
from tests.process.load import Producing

pytestmark = pytest.mark.slow
TOPIC = "orders"
# Replicas that diverge under random elections.
_MODEL = (
    "tests/models/test_replication.py"
    "::test_committed_records_survive_elections_and_replicas_converge"
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers with embedded coordination and a topic of twelve partitions."""
    with BrokerCluster(tmp_path) as running:
        running.create_topic(TOPIC)
        yield running


def test_leaders_killed_one_after_the_other_lose_nothing(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """Kill -9 of a leader, twice (scenario 1): acknowledgements pause at most 5 s."""
    with producing(cluster.bootstrap, TOPIC) as load:
        for partition in range(2):
            load.wait_for(1000)
            victim = cluster.leader(TOPIC, partition)
            cluster.kill(victim)
            load.wait_for(1000)
            cluster.start(victim)
            cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)


@pytest.mark.nightly(_MODEL)
def test_leader_killed_right_after_a_follower_has_restarted(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """The follower truncates by leader epoch, not to its high watermark (scenario 2, KIP-101)."""
    with producing(cluster.bootstrap, TOPIC) as load:
        for partition in range(2):
            load.wait_for(1000)
            leader = cluster.leader(TOPIC, partition)
            follower = next(number for number in cluster.ids if number != leader)
            cluster.kill(follower)
            load.wait_for(1000)
            cluster.start(follower)
            cluster.kill(leader)
            load.wait_for(1000)
            cluster.start(leader)
            cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)


@pytest.mark.nightly(
    "tests/unit/controller/test_all_brokers_killed.py"
    "::test_two_of_three_brokers_are_enough_after_all_were_killed"
)
def test_all_brokers_killed_at_once(cluster: BrokerCluster, producing: Producing) -> None:
    """Restarted in any order, the partitions can be written when two are up (scenario 3)."""
    seed = random.randrange(1000)
    print(f"seed {seed}")
    with producing(cluster.bootstrap, TOPIC) as load:
        load.wait_for(2000)
        cluster.kill(*cluster.ids)
        first, second, third = random.Random(seed).sample(cluster.ids, 3)
        cluster.start(first)
        cluster.start(second)
        load.wait_for(1000, seconds=10)
        cluster.start(third)
        cluster.wait_in_sync(TOPIC)
        load.wait_for(1000)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)


@pytest.mark.nightly(_MODEL)
def test_three_leader_changes_with_different_survivors(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """Logs that diverge over several leader epochs become identical again (scenario 4, KIP-279)."""
    with producing(cluster.bootstrap, TOPIC, partitions=1, rate=1000) as load:
        for _ in range(3):
            leader = cluster.leader(TOPIC)
            cluster.kill(leader)
            successor = cluster.leader(TOPIC)
            load.wait_for(500)
            cluster.start(leader)
            # The successor dies before or while the former leader catches up.
            wait(lambda: cluster.known() == set(cluster.ids), "all brokers are registered")
            if successor in cluster.running and len(cluster.partitions(TOPIC)[0].isr) > 1:
                cluster.kill(successor)
                load.wait_for(500)
                cluster.start(successor)
            cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)

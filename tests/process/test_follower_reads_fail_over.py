"""A consumer reads from the replica of its rack (KIP-392) while replica and leader fail."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load
from tests.process.test_read_from_follower import TOPIC, RackConsumer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers, each in a rack of its own, and a topic of one partition."""
    own = {number: {"broker.rack": f"rack{number}"} for number in (1, 2, 3)}
    options = {"replica.selector.class": _SELECTOR}
    with BrokerCluster(tmp_path, options=options, own=own) as running:
        running.create_topic(TOPIC, partitions=1)
        yield running


class Reading:
    """A consumer in the rack of one broker that reads what a load writes."""

    def __init__(self, cluster: BrokerCluster, load: Load, broker: int) -> None:
        self._load = load
        self.consumer = RackConsumer(cluster.bootstrap, f"rack{broker}")

    def numbers(self) -> list[int]:
        """Return what the consumer has read, in order."""
        return [int(value) for value in self.consumer.values]

    def catches_up(self, why: str) -> None:
        """Wait until the consumer has read everything that was acknowledged before this call."""
        goal = len(self._load.acknowledged[0])
        wait(lambda: len(self.consumer.values) >= goal, f"{why}: {goal} records are read", 60)
        numbers = self.numbers()
        repeated = [after for before, after in itertools.pairwise(numbers) if after <= before]
        assert numbers == list(range(len(numbers))), f"{why}: {repeated[:5]} read again"

    def close(self) -> None:
        """Stop reading."""
        self.consumer.close()


@campaign
def test_consumer_of_a_rack_reads_each_record_once_while_brokers_fail(
    cluster: BrokerCluster,
) -> None:
    """Its replica dies, is paused until it lags, loses its files, and becomes the leader.

    The replica that returns has fewer records than the consumer has read: its response is no reason
    to begin again, although the consumer resets to the earliest offset if a leader says so.
    """
    with Load(cluster.bootstrap, TOPIC, partitions=1, rate=300) as load:
        leader = cluster.leader(TOPIC)
        replica = next(number for number in cluster.ids if number != leader)
        reading = Reading(cluster, load, replica)
        try:
            load.wait_for(300)
            wait(lambda: reading.consumer.broker == replica, "the replica serves the consumer")
            cluster.kill(replica)
            load.wait_for(1000)
            cluster.start(replica)
            reading.catches_up("the replica was killed")
            cluster.wait_in_sync(TOPIC)
            cluster.pause(replica)
            # Longer than replica.lag.time.max.ms: it leaves the ISR.
            load.wait_for(2000)
            cluster.resume(replica)
            reading.catches_up("the replica was paused")
            cluster.wait_in_sync(TOPIC)
            cluster.kill(replica)
            shutil.rmtree(cluster.data(replica) / f"{TOPIC}-0")
            load.wait_for(300)
            cluster.start(replica)
            reading.catches_up("the replica has lost its files")
            cluster.wait_in_sync(TOPIC)
            for number in cluster.ids:
                if number != replica:
                    cluster.kill(number)
                    load.wait_for(300)
                    reading.catches_up("another broker was killed")
                    cluster.start(number)
                    cluster.wait_in_sync(TOPIC)
            load.wait_for(300)
            reading.catches_up("all brokers run")
        finally:
            reading.close()
    load.check(cluster.bootstrap)

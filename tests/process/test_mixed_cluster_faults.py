"""Two brokers of Ottla and one of Apache Kafka 3.9.2 in a cluster under faults."""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.compat import java
from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.faults import SECONDS, SEED, ZOOKEEPER, Faults, judge, progress
from tests.process.load import Load
from tests.process.machines import Machines, machines
from tests.process.transactional_load import transactions
from tests.process.zookeeper_servers import zookeeper

pytestmark = [
    pytest.mark.slow,
    pytest.mark.compat,
    pytest.mark.needs("java", "zookeeper", "namespaces"),
    pytest.mark.timeout(1200),
]
KAFKA = 3
TOPICS = ("orders", "payments")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(6)]
# Apache Kafka starts slowly on a loaded machine, and then keeps no session of two seconds.
_START_S = 300.0
_SESSION_MS = 6000


class MixedCluster(BrokerCluster):
    """Broker 3 is Apache Kafka's; its process, pauses and options are those of the others.

    It starts first: it ends if the cluster has features that Apache Kafka has only with KRaft.
    """

    def start(self, *numbers: int) -> None:
        """Start brokers, and return when they serve clients."""
        if KAFKA in numbers:
            super().start(KAFKA)
        super().start(*(number for number in numbers if number != KAFKA))

    def _spawn(self, number: int) -> "subprocess.Popen[str]":
        if number != KAFKA:
            return super()._spawn(number)
        # ZooKeeper keeps the registration of a killed broker, and Apache Kafka then does not start.
        wait(lambda: not self._is_registered(), "the former session has ended")
        path = self.folder / f"server{number}.properties"
        rows = self._rows(number).items()
        path.write_text("\n".join(f"{key}={value}" for key, value in rows))
        words = java.plain_command(
            java.kafka_class_path(java.KAFKA), "kafka.Kafka", str(path), heap_mb=400
        )
        with (self.folder / f"broker{number}.err").open("ab") as output:
            return subprocess.Popen(
                [*self._prefixes.get(number, ()), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
            )

    def _await_ready(self, number: int) -> None:
        if number == KAFKA:
            wait(lambda: self._accepts(number), "Apache Kafka listens", _START_S)
            wait(lambda: KAFKA in self.known(KAFKA), "Apache Kafka is registered", _START_S)
        else:
            super()._await_ready(number)

    def _is_registered(self) -> bool:
        client = KazooClient(str(self._zookeeper))
        client.start(30)
        try:
            return client.exists(f"/brokers/ids/{KAFKA}") is not None
        finally:
            client.stop()
            client.close()

    def _accepts(self, number: int) -> bool:
        try:
            socket.create_connection((self.host(number), self.port(number)), 1).close()
        except OSError:
            return False
        return True


@pytest.fixture
def network() -> Iterator[Machines]:
    """Four machines: three for brokers, one for ZooKeeper."""
    with machines(1, 2, 3, ZOOKEEPER) as result:
        yield result


@pytest.fixture
def cluster(tmp_path: Path, network: Machines) -> Iterator[MixedCluster]:
    """A broker of each kind on a machine of its own, and one more of ours."""
    host, prefix = network.addresses[ZOOKEEPER], network.prefix(ZOOKEEPER)
    with (
        zookeeper(tmp_path / "zookeeper", host, prefix) as server,
        MixedCluster(
            tmp_path,
            zookeeper=server.address,
            # Apache Kafka's brokers do not know the secret of the cluster.
            options={
                "inter.broker.authentication": "none",
                "zookeeper.session.timeout.ms": str(_SESSION_MS),
                "replica.lag.time.max.ms": "10000",
            },
            hosts={number: network.addresses[number] for number in (1, 2, 3)},
            prefixes={number: network.prefix(number) for number in (1, 2, 3)},
        ) as running,
    ):
        for topic in TOPICS:
            running.create_topic(topic, partitions=6)
        yield running


@campaign
def test_mixed_cluster_loses_nothing_under_faults(cluster: MixedCluster, network: Machines) -> None:
    """No acknowledged record is lost, doubled or reordered by kills, pauses and cut networks."""
    faults = Faults(cluster, network, TOPICS, _SESSION_MS)
    with Load(cluster.bootstrap, TOPICS[0], partitions=6, rate=200) as load:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            load.wait_for(200, seconds=120)
            faults.inject()
        load.wait_for(200)
    print(f"seed {SEED}, {len(faults.injected)} faults: {', '.join(faults.injected)}")
    print(f"{sum(load.sent)} records, longest gap {load.gap_seconds:.1f} s")
    load.check(cluster.bootstrap)
    cluster.verify(*TOPICS)


@campaign
def test_history_of_transactions_in_a_mixed_cluster_has_no_anomaly(
    cluster: MixedCluster, network: Machines
) -> None:
    """Coordinators and leaders move between both kinds of brokers; transactions stay atomic."""
    faults = Faults(cluster, network, TOPICS, _SESSION_MS)
    with transactions(cluster.bootstrap, PARTITIONS, workers=4, batch=10, seed=SEED) as recorder:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            progress(recorder, 30)
            faults.inject()
        progress(recorder, 30)
    print(f"{len(faults.injected)} faults: {', '.join(faults.injected)}")
    assert judge(recorder, f"mixed-{SEED}") == []
    cluster.verify(*TOPICS)

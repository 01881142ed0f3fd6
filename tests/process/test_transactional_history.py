"""Histories of transactions under faults, judged by the anomalies of Jepsen's workload for Kafka."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.broker_cluster import BrokerCluster, campaign
from tests.process.faults import SECONDS, SEED, ZOOKEEPER, Faults, judge, progress
from tests.process.machines import Machines, machines
from tests.process.transactional_load import transactions
from tests.process.zookeeper_servers import zookeeper

pytestmark = pytest.mark.slow
TOPICS = ("orders", "payments")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(6)]


def test_history_of_transactions_has_no_anomaly_while_a_broker_is_killed(tmp_path: Path) -> None:
    """No value is lost, doubled, reordered or read before its commit, and none after an abort."""
    with BrokerCluster(tmp_path) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6)
        with transactions(cluster.bootstrap, PARTITIONS, workers=3, batch=3, seed=SEED) as recorder:
            progress(recorder)
            cluster.kill(1)
            progress(recorder)
            cluster.start(1)
            progress(recorder)
        assert judge(recorder) == []


@pytest.fixture
def network() -> Iterator[Machines]:
    """Four machines: three for brokers, one for ZooKeeper."""
    with machines(1, 2, 3, ZOOKEEPER) as result:
        yield result


@campaign
@pytest.mark.timeout(1200)
@pytest.mark.needs("zookeeper", "namespaces")
def test_history_of_transactions_has_no_anomaly_under_all_faults(
    tmp_path: Path, network: Machines
) -> None:
    """Kills, pauses and cut networks for minutes; `tests.process.jepsen` judges the history, too."""
    host, prefix = network.addresses[ZOOKEEPER], network.prefix(ZOOKEEPER)
    with (
        zookeeper(tmp_path / "zookeeper", host, prefix) as server,
        BrokerCluster(
            tmp_path,
            zookeeper=server.address,
            hosts={number: network.addresses[number] for number in (1, 2, 3)},
            prefixes={number: network.prefix(number) for number in (1, 2, 3)},
        ) as cluster,
    ):
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6)
        faults = Faults(cluster, network, TOPICS)
        with transactions(
            cluster.bootstrap, PARTITIONS, workers=6, batch=20, seed=SEED
        ) as recorder:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                progress(recorder, 50)
                faults.inject()
            progress(recorder, 50)
        print(f"{len(faults.injected)} faults: {', '.join(faults.injected)}")
        assert judge(recorder, f"transactions-{SEED}") == []
        cluster.verify(*TOPICS)

"""Many topics that are created and deleted again and again: nothing of them is left."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.zookeeper_servers import ZooKeeper, zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.needs("zookeeper"), pytest.mark.timeout(1500)]
_SECONDS = float(os.environ.get("OTTLA_CAMPAIGN_SECONDS", "600"))
_TOPICS, _PARTITIONS, _REPLICAS = 200, 10, 2
_CALL_S = 120
# Caches and sessions that end later fill in the first rounds.
_WARM_ROUNDS = 2
_GROWTH = 1.15


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeper]:
    """A real ZooKeeper."""
    with zookeeper(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path, ensemble: ZooKeeper) -> Iterator[BrokerCluster]:
    """Three brokers that remove deleted files after a second."""
    options = {
        "log.segment.delete.delay.ms": "1000",
        # A loaded machine keeps no session of two seconds.
        "zookeeper.session.timeout.ms": "18000",
    }
    with BrokerCluster(tmp_path, zookeeper=ensemble.address, options=options) as running:
        yield running


def resident_mb(process_id: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(process_id: int) -> int:
    """Return how many files and sockets a process has open."""
    return len(list(Path(f"/proc/{process_id}/fd").iterdir()))


def nodes(client: KazooClient, path: str = "/") -> int:
    """Return the number of nodes below a path."""
    children = client.get_children(path)
    return len(children) + sum(
        nodes(client, f"{path.rstrip('/')}/{child}") for child in children if child != "zookeeper"
    )


def churn(cluster: BrokerCluster, names: list[str]) -> None:
    """Create topics, write to each, and delete them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    timeouts = {"request_timeout": _CALL_S, "operation_timeout": _CALL_S}
    created = admin.create_topics(
        [NewTopic(name, _PARTITIONS, _REPLICAS) for name in names], **timeouts
    )
    for future in created.values():
        future.result(_CALL_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    failures: list[object] = []
    for name in names:
        for partition in range(_PARTITIONS):
            producer.produce(
                name,
                b"x" * 100,
                partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
    assert producer.flush(_CALL_S) == 0
    assert failures == []
    for future in admin.delete_topics(names, **timeouts).values():
        future.result(_CALL_S)


def left_over(cluster: BrokerCluster) -> list[str]:
    """Return the directories of churned topics."""
    return [path.name for number in cluster.ids for path in cluster.data(number).glob("churn-*")]


@campaign
def test_topics_that_come_and_go_leave_nothing(cluster: BrokerCluster, ensemble: ZooKeeper) -> None:
    """Memory and descriptors of the brokers stay flat; directories and nodes are removed."""
    client = KazooClient(ensemble.address)
    client.start(30)
    processes = [cluster.process_id(number) for number in cluster.ids]
    names = [f"churn-{number}" for number in range(_TOPICS)]
    cluster.create_topic("kept")
    rounds: list[tuple[float, list[float], list[int], int]] = []
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end or len(rounds) <= _WARM_ROUNDS + 1:
        started = time.monotonic()
        churn(cluster, names)
        wait(lambda: not client.get_children("/admin/delete_topics"), "all are deleted", _CALL_S)
        wait(lambda: not left_over(cluster), "the directories are removed", _CALL_S)
        took = time.monotonic() - started
        memory = [resident_mb(item) for item in processes]
        rounds.append((took, memory, [descriptors(item) for item in processes], nodes(client)))
        print(f"{took:.1f} s, RSS {[round(item) for item in memory]} MB, {rounds[-1][2:]}")
    client.stop()
    client.close()
    _, memory, open_files, node_count = rounds[_WARM_ROUNDS]
    _, last_memory, last_files, last_nodes = rounds[-1]
    print(f"{len(rounds)} rounds of {_TOPICS} topics with {_PARTITIONS} partitions")
    assert last_nodes <= node_count, "nodes of deleted topics are left"
    for before, after in zip(open_files, last_files, strict=True):
        # Connections of clients come and go.
        assert after <= before + 10
    for megabytes, after_mb in zip(memory, last_memory, strict=True):
        assert after_mb <= megabytes * _GROWTH

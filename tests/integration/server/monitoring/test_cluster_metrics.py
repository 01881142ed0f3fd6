"""`/metrics` of a cluster of three: each value has one reporter, and faults change the values."""

import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Cluster
from tests.unit.server.monitoring.exposition import Samples, parse

OPTIONS = {
    "metrics.listener": "127.0.0.1:0",
    "metrics.dialects": "jmx-exporter,kafka-exporter,kafka-lag-exporter",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "1000",
    "zookeeper.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
}
PATIENCE_SECONDS = 20.0


class Scrape:
    """The samples of all live brokers at one time."""

    def __init__(self, samples: dict[int, Samples]) -> None:
        self.samples = samples

    def of(self, broker: int, name: str, **labels: object) -> float:
        """Return one sample of a broker."""
        required = frozenset((key, str(value)) for key, value in labels.items())
        return self.samples[broker][name, required]

    def all(self, name: str, **labels: object) -> list[float]:
        """Return the samples of all brokers that have these labels among theirs."""
        required = {(key, str(value)) for key, value in labels.items()}
        return [
            value
            for samples in self.samples.values()
            for (result, pairs), value in samples.items()
            if result == name and required <= pairs
        ]

    def sum(self, name: str, **labels: object) -> float:
        """Return the sum that a dashboard shows."""
        return sum(self.all(name, **labels))


def url(cluster: Cluster, broker: int, path: str = "/metrics") -> str:
    """Return the address of a page of a broker's monitoring."""
    address = cluster.node(broker).monitoring_address
    assert address is not None
    return f"http://{address[0]}:{address[1]}{path}"


def read(cluster: Cluster, broker: int, path: str) -> bytes:
    with urllib.request.urlopen(url(cluster, broker, path), timeout=10) as response:
        body: bytes = response.read()
        return body


def scrape(cluster: Cluster) -> Scrape:
    """Scrape every live broker."""
    return Scrape(
        {
            broker: parse(read(cluster, broker, "/metrics").decode())
            for broker in cluster.live_brokers
        }
    )


def scrape_until(cluster: Cluster, is_reached: Callable[[Scrape], Any]) -> Scrape:
    """Scrape until a condition is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        samples = scrape(cluster)
        if is_reached(samples):
            return samples
        assert time.monotonic() < deadline, "the metrics did not change in time"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield a cluster of three with a replicated topic, records, and a group that lags."""
    with Cluster(brokers=3, options=OPTIONS) as running:
        running.create_topic("orders", partitions=3, replication_factor=3)
        running.create_topic("single", partitions=3)
        produce(running, "orders", 12, age_seconds=1000)
        produce(running, "orders", 18, age_seconds=500)
        produce(running, "single", 3, age_seconds=100)
        commit(running, "orders", 4)
        commit(running, "single", 0)
        yield running


def produce(cluster: Cluster, topic: str, count: int, *, age_seconds: int = 0) -> None:
    """Write records of this age with acks=all, evenly to three partitions."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    timestamp = int((time.time() - age_seconds) * 1000)
    for number in range(count):
        producer.produce(topic, b"value", partition=number % 3, timestamp=timestamp)
    assert producer.flush(20) == 0


def commit(cluster: Cluster, topic: str, offset: int) -> None:
    """Commit an offset of each partition for the group g, which then has no members."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    offsets = [TopicPartition(topic, number, offset) for number in range(3)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_each_value_has_one_reporter(cluster: Cluster) -> None:
    """A sum over the brokers counts a partition, a topic, a group and the cluster once."""
    samples = scrape(cluster)
    partitions = 3 + 3 + 1
    assert samples.sum("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert len(samples.all("ottla_controller_epoch")) == 1
    assert samples.sum("kafka_controller_kafkacontroller_globalpartitioncount") == partitions
    assert samples.sum("kafka_server_replicamanager_leadercount") == partitions
    assert samples.sum("kafka_server_replicamanager_partitioncount") == 9 + 3 + 3
    assert samples.all("kafka_brokers") == [3]
    assert samples.all("kafka_broker_info") == [1, 1, 1]
    assert samples.all("kafka_topic_partitions", topic="orders") == [3]
    assert samples.sum("kafka_topic_partition_current_offset", topic="orders") == 30
    assert samples.all("kafka_topic_partition_in_sync_replica", topic="orders") == [3, 3, 3]
    assert samples.sum("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 30
    assert samples.sum("kafka_server_brokertopicmetrics_failedfetchrequests_total", topic="a") == 0
    assert samples.sum("kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
    assert (
        samples.sum("kafka_server_group_coordinator_metrics_group_count", protocol="classic") == 1
    )
    assert samples.sum("kafka_controller_controllerstats_uncleanleaderelections_total") == 0
    assert samples.sum("zookeeper_numaliveconnections") in (0, 3)


def test_lag_is_known_for_partitions_of_other_brokers(cluster: Cluster) -> None:
    """The coordinator asks the leaders for the high watermarks and the times of records."""
    labels = {"consumergroup": "g", "topic": "orders"}
    samples = scrape(cluster)
    assert samples.all("kafka_consumergroup_lag", **labels) == [6, 6, 6]
    assert samples.all("kafka_consumergroup_lag_sum", **labels) == [18]
    assert samples.all("kafka_consumergroup_lag", consumergroup="g", topic="single") == [1, 1, 1]
    seconds = samples.all("kafka_consumergroup_group_lag_seconds", group="g", topic="orders")
    assert seconds == pytest.approx([500] * 3, abs=60)
    assert len(set(seconds)) == 1
    remote = samples.all("kafka_consumergroup_group_lag_seconds", group="g", topic="single")
    assert remote == pytest.approx([100] * 3, abs=60)
    assert samples.all("kafka_consumergroup_group_max_lag_seconds", group="g") == [max(seconds)]
    assert samples.all("kafka_consumergroup_group_max_lag", group="g") == [6]
    assert samples.sum("kafka_partition_latest_offset", topic="orders") == 30


def test_lag_in_seconds_is_the_age_of_the_next_record(cluster: Cluster) -> None:
    """The error is below a second, and there is no lag after the last record."""
    cluster.create_topic("timed", partitions=3, replication_factor=3)
    produce(cluster, "timed", 9, age_seconds=3600)
    commit(cluster, "timed", 1)
    labels: dict[str, Any] = {"group": "g", "topic": "timed"}
    before = time.monotonic()
    (age, *_) = scrape(cluster).all("kafka_consumergroup_group_lag_seconds", **labels)
    (again, *_) = scrape(cluster).all("kafka_consumergroup_group_lag_seconds", **labels)
    passed = time.monotonic() - before
    assert 0 <= again - age <= passed + 1
    assert age >= 3600
    commit(cluster, "timed", 3)
    assert scrape(cluster).all("kafka_consumergroup_group_lag_seconds", **labels) == [0, 0, 0]


@pytest.mark.slow  # Sessions and replica.lag.time.max.ms expire in real time.
def test_a_scrape_does_not_wait_for_a_silent_leader(cluster: Cluster) -> None:
    """The lag of its partitions is unknown after a second; other partitions' lags are served."""
    name = "kafka_consumergroup_lag"
    coordinator = cluster.leader("__consumer_offsets")
    silent = next(broker for broker in cluster.brokers if broker != coordinator)
    cluster.pause(silent)
    try:
        started = time.monotonic()
        samples = Scrape({coordinator: parse(read(cluster, coordinator, "/metrics").decode())})
        assert time.monotonic() - started < 8
    finally:
        cluster.resume(silent)
    lags = samples.all(name, consumergroup="g", topic="single")
    assert sorted(lags) == [-1, 1, 1]
    assert samples.all(name, consumergroup="g", topic="orders") == [6, 6, 6]
    scrape_until(cluster, lambda found: -1 not in found.all(name, consumergroup="g"))
    cluster.wait_in_sync("orders")


def test_replicated_bytes_are_counted_at_both_ends(cluster: Cluster) -> None:
    """Followers fetch everything that leaders append, twice with three replicas."""
    prefix = "kafka_server_brokertopicmetrics_replicationbytes"
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    # A lag is unknown (-1) from a new leader epoch until the first response.
    scrape_until(cluster, lambda found: -1 not in found.all(lag, topic="orders"))
    replicated = scrape_until(
        cluster, lambda found: found.sum(f"{prefix}in_total") == found.sum(f"{prefix}out_total")
    )
    appended = replicated.sum("kafka_server_brokertopicmetrics_bytesin_total", topic="orders")
    assert replicated.sum(f"{prefix}in_total") >= 2 * appended > 0
    assert replicated.all(lag, topic="orders") == [0] * 6
    assert (
        replicated.all("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == [0] * 3
    )


def test_sessions_with_the_tree_are_reported(cluster: Cluster) -> None:
    """Operations on the tree are timed, and an expired session is counted."""
    broker = next(node for node in cluster.brokers if node != cluster.controller())
    name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    listener = "kafka_server_sessionexpirelistener_zookeeper"
    before = scrape(cluster)
    assert before.of(broker, f"{name}_count") > 5
    assert before.of(broker, name, quantile="0.99") >= 0
    expired = before.of(broker, f"{listener}expires_total")
    connected = before.of(broker, f"{listener}syncconnects_total")
    cluster.expire_session(broker)
    after = scrape_until(
        cluster, lambda found: found.of(broker, f"{listener}syncconnects_total") > connected
    )
    assert after.of(broker, f"{listener}expires_total") == expired + 1
    cluster.wait_in_sync("orders")


@pytest.mark.slow  # Sessions and replica.lag.time.max.ms expire in real time.
def test_a_follower_without_connection_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    """Leaders count the ISR changes that the controller has accepted."""
    prefix = "kafka_server_replicamanager_"
    broker = next(node for node in cluster.brokers if node != cluster.controller())
    before = scrape(cluster)
    # Its session stays, so that its leaders notice it, not the controller.
    cluster._cuts.isolate(broker)
    produce_until_shrunk(cluster, broker)
    under = scrape_until(cluster, lambda found: found.sum(f"{prefix}underreplicatedpartitions") > 0)
    assert under.sum(f"{prefix}isrshrinks_total") > before.sum(f"{prefix}isrshrinks_total")
    cluster._cuts.heal(broker)
    healed = scrape_until(
        cluster, lambda found: found.sum(f"{prefix}underreplicatedpartitions") == 0
    )
    assert healed.sum(f"{prefix}isrexpands_total") > before.sum(f"{prefix}isrexpands_total")


def produce_until_shrunk(cluster: Cluster, absent: int) -> None:
    """Append to the partitions that other brokers lead, so that the absent one lags."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, "acks": 1})
    for number in range(3):
        if cluster.leader("orders", number) != absent:
            producer.produce("orders", b"value", partition=number)
    assert producer.flush(20) == 0


def test_dead_brokers_show_in_the_counts_of_partitions(cluster: Cluster) -> None:
    """Under-replicated, at and under min.insync.replicas, offline: on leaders and controller."""
    prefix = "kafka_server_replicamanager_"
    offline = "kafka_controller_kafkacontroller_offlinepartitionscount"
    first, second = (broker for broker in cluster.brokers if broker != cluster.controller())
    cluster.kill(first)
    samples = scrape_until(cluster, lambda samples: samples.sum(offline) == 1)
    led = samples.sum(f"{prefix}leadercount")
    samples = scrape_until(
        cluster, lambda samples: samples.sum(f"{prefix}atminisrpartitioncount") >= 7
    )
    assert samples.sum("kafka_cluster_partition_atminisr", topic="orders") == 3
    assert samples.sum("kafka_cluster_partition_underreplicated", topic="orders") == 3
    assert samples.sum("kafka_topic_partition_under_replicated_partition", topic="orders") == 3
    assert samples.sum(f"{prefix}underminisrpartitioncount") == 0
    assert led == 9
    cluster.kill(second)
    samples = scrape_until(cluster, lambda samples: samples.sum(offline) == 2)
    samples = scrape_until(
        cluster, lambda samples: samples.sum(f"{prefix}underminisrpartitioncount") >= 7
    )
    assert samples.sum("kafka_cluster_partition_underminisr", topic="orders") == 3
    assert samples.all("kafka_topic_partitions", topic="single") == [3]
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 300}
    )
    producer.produce("orders", b"value", partition=0)
    producer.flush(20)
    failed = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    assert scrape(cluster).sum(failed, topic="orders") >= 1
    cluster.restart(first)
    cluster.restart(second)
    scrape_until(cluster, lambda samples: samples.sum(f"{prefix}underreplicatedpartitions") == 0)
    assert scrape(cluster).sum(offline) == 0

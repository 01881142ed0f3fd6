"""A consumer reads from the replica of its rack (KIP-392): real brokers, librdkafka."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.process.broker_cluster import BrokerCluster, wait

pytestmark = pytest.mark.slow
TOPIC = "orders"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers, each in a rack of its own."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    own = {number: {"broker.rack": f"rack{number}"} for number in (1, 2, 3)}
    with BrokerCluster(tmp_path, options={"replica.selector.class": selector}, own=own) as running:
        running.create_topic(TOPIC, partitions=1)
        yield running


class RackConsumer:
    """A consumer in a rack; `broker` is where it reads from, by librdkafka's statistics."""

    def __init__(self, bootstrap: str, rack: str) -> None:
        self.broker = -1
        self.values: list[bytes] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": rack,
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._statistics,
                "log_level": 0,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _statistics(self, text: str) -> None:
        topics: dict[str, Any] = json.loads(text)["topics"]
        if TOPIC in topics and "0" in topics[TOPIC]["partitions"]:
            self.broker = topics[TOPIC]["partitions"]["0"]["broker"]

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.values.append(message.value())
        self._consumer.close()

    def close(self) -> None:
        """Stop reading."""
        self._is_stopped.set()
        self._thread.join()


def produce(cluster: BrokerCluster, *values: bytes) -> None:
    """Write records with acks=all."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0


def test_consumer_reads_from_the_replica_in_its_rack(cluster: BrokerCluster) -> None:
    """The consumer reads every record from the follower, also those written while the follower is
    down.

    librdkafka stays with a preferred replica for five minutes, so the follower is started again.
    """
    leader = cluster.leader(TOPIC)
    follower = next(number for number in cluster.ids if number != leader)
    consumer = RackConsumer(cluster.bootstrap, f"rack{follower}")
    try:
        produce(cluster, b"1", b"2")
        wait(lambda: consumer.broker == follower, "the consumer reads from the follower")
        produce(cluster, b"3")
        wait(lambda: consumer.values == [b"1", b"2", b"3"], "the follower serves new records")
        cluster.kill(follower)
        produce(cluster, b"4")
        cluster.start(follower)
        wait(lambda: consumer.values == [b"1", b"2", b"3", b"4"], "all records are read")
    finally:
        consumer.close()

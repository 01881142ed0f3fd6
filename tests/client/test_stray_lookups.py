"""librdkafka gets a response to an outdated lookup: every record arrives once."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client import Consumer, Producer, RebalanceListener, TopicPartition
from ottla.coordinators.naming import partition_of
from ottla.testing import Cluster
from tests.client.chaos import QUICK
from tests.client.test_consumer import poll_until, read

TOPIC = "numbers"
COUNT = 100
OFFSETS_PARTITIONS = 10
# librdkafka repeats an outdated lookup after half a second.
REPEATED_S = 1.2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Brokers whose sessions outlast a pause, and a topic with numbers."""
    options = {
        "offsets.topic.num.partitions": f"{OFFSETS_PARTITIONS}",
        "offsets.topic.replication.factor": "1",
    }
    with Cluster(brokers=2, options=options) as running:
        running.create_topic(TOPIC, partitions=1, replication_factor=1)
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            for number in range(COUNT):
                producer.send(TOPIC, b"%d" % number)
        # The first member creates the topic of offsets.
        with Consumer(TOPIC, bootstrap_servers=running.bootstrap, group_id="first") as consumer:
            poll_until(consumer, lambda: bool(consumer.assignment))
        yield running


def offsets_of(consumer: Consumer) -> list[int]:
    """Return the offsets of all records until librdkafka has repeated its lookup."""
    offsets = [record.offset for record in read(consumer, 1)]
    deadline = time.monotonic() + REPEATED_S
    while (left_s := deadline - time.monotonic()) > 0:
        offsets += [record.offset for record in consumer.poll(left_s, max_records=1)]
    return offsets


def test_a_seek_during_a_lookup_is_kept(cluster: Cluster) -> None:
    """The records after the sought offset arrive once."""
    leader = cluster.leader(TOPIC)
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        assert consumer.partitions_for(TOPIC) == [0]
        assert consumer.end_offsets([(TOPIC, 0)]) == {(TOPIC, 0): COUNT}
        cluster.pause(leader)
        try:
            consumer.assign([(TOPIC, 0)])
            assert consumer.poll(0.3) == []
            consumer.seek((TOPIC, 0), 60)
            assert consumer.poll(0.1) == []
        finally:
            cluster.resume(leader)
        assert offsets_of(consumer) == list(range(60, COUNT))


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_partitions_that_return_during_a_lookup_are_read_once(
    cluster: Cluster, protocol: str
) -> None:
    """The member gives its partition up, and gets it again with its own offset."""
    leader = cluster.leader(TOPIC)
    group = group_elsewhere(cluster, protocol, leader)
    # librdkafka may ask the paused broker for the coordinator first.
    settings: dict[str, Any] = {**QUICK, "partition_assignment_strategy": protocol}
    settings |= {"auto_offset_reset": "earliest", "group_id": group}
    with Consumer(bootstrap_servers=cluster.bootstrap, **settings) as consumer:
        assert consumer.end_offsets([(TOPIC, 0)]) == {(TOPIC, 0): COUNT}
        cluster.pause(leader)
        try:
            consumer.subscribe(TOPIC)
            poll_until(consumer, lambda: bool(consumer.assignment))
            assert consumer.poll(0.3) == []
            consumer.unsubscribe()
            consumer.subscribe(TOPIC, listener=StartsAt40(consumer))
            poll_until(consumer, lambda: bool(consumer.assignment))
        finally:
            cluster.resume(leader)
        assert offsets_of(consumer) == list(range(40, COUNT))


class StartsAt40(RebalanceListener):
    """Begins an assignment where the application says."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Seek all."""
        for key in partitions:
            self._consumer.seek(key, 40)


def group_elsewhere(cluster: Cluster, name: str, broker: int) -> str:
    """Return a group whose coordinator is another broker."""
    names = [f"{name}-{number}" for number in range(20)]
    return next(
        group
        for group in names
        if cluster.leader("__consumer_offsets", partition_of(group, OFFSETS_PARTITIONS)) != broker
    )

"""Groups of the consumer protocol (KIP-848) with librdkafka: rebalances, crashes, upgrades."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PARTITIONS = 12
PATIENCE_S = 30.0
# The error of a commit whose member must first take part in a rebalance.
REBALANCED = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
)
OPTIONS = {
    "offsets.topic.num.partitions": "3",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "2000",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a cluster of one with a heartbeat interval of 200 ms, and a topic of 12 partitions."""
    with Cluster(options=OPTIONS) as running:
        create(running, "t", PARTITIONS)
        yield running


def admin(cluster: Cluster) -> AdminClient:
    """Return a client; it must live longer than its futures."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    """Create a topic."""
    client = admin(cluster)
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def produce(cluster: Cluster, first: int, count: int) -> None:
    """Write numbered records to all partitions in turn."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(first, first + count):
        producer.produce("t", value=str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


class Members:
    """Consumers of one group that read, record what they have read, and then commit."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.running: list[Consumer] = []
        self.seen: Counter[int] = Counter()

    def join(self, *topics: str, protocol: str = "consumer", **settings: Any) -> Consumer:
        """Add a member."""
        extra = {"group.protocol": protocol} | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        if protocol == "classic":
            extra |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
            # Not cooperative-sticky: there librdkafka puts user data into its assignments, and such
            # groups are not upgraded, also not by Apache Kafka.
            extra |= {"partition.assignment.strategy": "range"}
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
            }
            | extra
        )
        consumer.subscribe(list(topics) or ["t"])
        self.running.append(consumer)
        return consumer

    def until(self, is_done: Callable[[], bool]) -> None:
        """Poll all members until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, (self.shares(), sum(self.seen.values()))
            for consumer in self.running:
                self._poll(consumer)

    def _poll(self, consumer: Consumer) -> None:
        batch = consumer.consume(100, 0.02)
        messages = [message for message in batch if message.error() is None]
        first: dict[tuple[str, int], int] = {}
        behind: dict[tuple[str, int], int] = {}
        for message in messages:
            topic_partition, offset = (
                (message.topic() or "", message.partition() or 0),
                message.offset() or 0,
            )
            first.setdefault(topic_partition, offset)
            behind[topic_partition] = offset + 1
        if messages and self._commits(consumer, first, behind):
            self.seen.update(int(message.value() or b"-1") for message in messages)

    def _commits(
        self,
        consumer: Consumer,
        first: dict[tuple[str, int], int],
        behind: dict[tuple[str, int], int],
    ) -> bool:
        """Commit after reading. If a rebalance prevents it, the records do not count as read."""
        offsets = [
            TopicPartition(*topic_partition, offset) for topic_partition, offset in behind.items()
        ]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            assert error.args[0].code() in REBALANCED, error
            held = {(item.topic, item.partition) for item in consumer.assignment()}
            for topic_partition in held & first.keys():
                consumer.seek(TopicPartition(*topic_partition, first[topic_partition]))
            return False
        return True

    def shares(self) -> list[int]:
        """Return the number of partitions of each member, sorted."""
        return sorted(len(consumer.assignment()) for consumer in self.running)

    def vanish(self, consumer: Consumer) -> None:
        """Stop polling a member without closing it."""
        self.running.remove(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Let a member leave."""
        self.running.remove(consumer)
        consumer.close()

    def close(self) -> None:
        """Close all members."""
        while self.running:
            self.leave(self.running[0])


@pytest.fixture
def members(cluster: Cluster) -> Iterator[Members]:
    """Return a group without members."""
    result = Members(cluster)
    yield result
    result.close()


def test_members_share_twelve_partitions_and_read_each_record_once(
    cluster: Cluster, members: Members
) -> None:
    """With one, two, three members and back, shares are even, and each record is read exactly once."""
    members.join()
    produce(cluster, 0, 240)
    members.until(lambda: len(members.seen) == 240 and members.shares() == [12])
    second = members.join()
    members.until(lambda: members.shares() == [6, 6])
    produce(cluster, 240, 240)
    members.join()
    members.until(lambda: members.shares() == [4, 4, 4] and len(members.seen) == 480)
    members.leave(second)
    produce(cluster, 480, 120)
    members.until(lambda: members.shares() == [6, 6] and len(members.seen) == 600)
    assert set(members.seen.values()) == {1}


def test_partitions_of_crashed_member_are_reassigned(cluster: Cluster, members: Members) -> None:
    """When a session has expired, the other members resume from the committed offsets."""
    produce(cluster, 0, 120)
    members.join()
    gone = members.join(max_poll_interval_ms=2000)
    members.until(lambda: members.shares() == [6, 6] and len(members.seen) == 120)
    members.vanish(gone)
    produce(cluster, 120, 120)
    members.until(lambda: members.shares() == [12] and len(members.seen) == 240)
    assert set(members.seen.values()) == {1}
    gone.close()


def test_group_is_listed_described_and_deleted(cluster: Cluster, members: Members) -> None:
    """Admin clients see type, state, members and offsets, and delete the empty group."""
    produce(cluster, 0, 12)
    one = members.join()
    members.until(lambda: len(members.seen) == 12)
    client = admin(cluster)
    (listed,) = client.list_consumer_groups().result().valid
    assert (listed.group_id, listed.type) == ("g", ConsumerGroupType.CONSUMER)
    described = client.describe_consumer_groups(["g"])["g"].result()
    assert described.type == ConsumerGroupType.CONSUMER
    (member,) = described.members
    assert len(member.assignment.topic_partitions) == PARTITIONS
    members.leave(one)
    client.delete_consumer_groups(["g"])["g"].result()
    assert client.list_consumer_groups().result().valid == []


def test_new_topics_and_partitions_are_assigned(cluster: Cluster, members: Members) -> None:
    """A subscription by expression includes new topics; new partitions are assigned, too."""
    members.join("^u.*")
    members.until(lambda: members.shares() == [0])
    create(cluster, "u1", 3)
    members.until(lambda: members.shares() == [3])
    client = admin(cluster)
    client.create_partitions([NewPartitions("u1", 5)])["u1"].result()
    members.until(lambda: members.shares() == [5])
    (member,) = members.running
    owned = {(item.topic, item.partition) for item in member.assignment()}
    assert owned == {("u1", number) for number in range(5)}


def test_static_member_keeps_its_partitions_while_it_is_away(
    cluster: Cluster, members: Members
) -> None:
    """A member with an instance id returns to its partitions, and no other member is affected."""
    members.join(group_instance_id="one")
    two = members.join(group_instance_id="two")
    members.until(lambda: members.shares() == [6, 6])
    had = {(item.topic, item.partition) for item in two.assignment()}
    members.leave(two)
    again = members.join(group_instance_id="two")
    members.until(lambda: len(again.assignment()) == 6)
    assert {(item.topic, item.partition) for item in again.assignment()} == had


def test_group_is_upgraded_and_downgraded_member_by_member(
    cluster: Cluster, members: Members
) -> None:
    """Classic members and members of the consumer protocol share a group, in both directions."""
    classic = [members.join(protocol="classic") for _ in range(2)]
    produce(cluster, 0, 120)
    members.until(lambda: members.shares() == [6, 6] and len(members.seen) == 120)
    assert _type(cluster) is ConsumerGroupType.CLASSIC
    new = [members.join()]
    members.until(lambda: members.shares() == [4, 4, 4])
    assert _type(cluster) is ConsumerGroupType.CONSUMER
    produce(cluster, 120, 120)
    members.until(lambda: len(members.seen) == 240)
    members.leave(classic[0])
    new.append(members.join())
    members.leave(classic[1])
    members.until(lambda: members.shares() == [6, 6])
    produce(cluster, 240, 120)
    members.until(lambda: len(members.seen) == 360)
    members.join(protocol="classic")
    members.until(lambda: members.shares() == [4, 4, 4])
    members.leave(new[0])
    members.leave(new[1])
    members.until(lambda: members.shares() == [12] and _type(cluster) is ConsumerGroupType.CLASSIC)
    produce(cluster, 360, 120)
    members.until(lambda: len(members.seen) == 480)
    assert set(members.seen.values()) == {1}


def _type(cluster: Cluster) -> ConsumerGroupType:
    client = admin(cluster)
    (listed,) = client.list_consumer_groups().result().valid
    return listed.type

"""Consumer groups of foreign clients: members share partitions, leave, return and resume."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PARTITIONS = 6
PATIENCE_S = 30.0


class Member(threading.Thread):
    """A consumer of librdkafka on a thread of its own; its assignment and records may be read."""

    def __init__(self, cluster: Cluster, name: str = "m", **settings: object) -> None:
        super().__init__(name=name, daemon=True)
        self.settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "enable.auto.commit": False,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self.owned: set[int] = set()
        self.assignments: list[set[int]] = []
        self.revocations: list[set[int]] = []
        self.seen: list[bytes] = []
        self.error: confluent_kafka.KafkaError | None = None
        self._ends = threading.Event()
        self.start()

    def run(self) -> None:
        consumer = Consumer(self.settings)
        is_cooperative = self.settings.get("partition.assignment.strategy") == "cooperative-sticky"

        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.assignments.append({item.partition for item in partitions})
            if is_cooperative:
                consumer.incremental_assign(partitions)
                self.owned |= self.assignments[-1]
            else:
                consumer.assign(partitions)
                self.owned = self.assignments[-1]

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.revocations.append({item.partition for item in partitions})
            if is_cooperative:
                consumer.incremental_unassign(partitions)
            else:
                consumer.unassign()
            self.owned = self.owned - self.revocations[-1]

        consumer.subscribe(["t"], on_assign=assigned, on_revoke=revoked)
        while self.error is None and not self._ends.is_set():
            message = consumer.poll(0.05)
            if message is None:
                continue
            if message.error() is None:
                self.seen.append(message.value())
                consumer.commit(message, asynchronous=False)
            elif message.error().code() == confluent_kafka.KafkaError._FATAL:
                self.error = message.error()
        consumer.close()

    def end(self) -> None:
        """Leave the group."""
        self._ends.set()
        self.join(PATIENCE_S)
        assert self.error is None


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fail with `what` after a long time."""
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.02)


def produce(cluster: Cluster, values: range) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for value in values:
        producer.produce("t", value=b"%d" % value, partition=value % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def cluster(ottla_cluster: Cluster) -> Cluster:
    ottla_cluster.create_topic("t", partitions=PARTITIONS)
    return ottla_cluster


@pytest.fixture
def members(cluster: Cluster) -> Iterator[list[Member]]:
    """Return a list of members, which are closed at the end of the test."""
    result: list[Member] = []
    yield result
    for member in result:
        member.end()


def is_shared(*members: Member) -> bool:
    """Return True if the members have all partitions, each one once, and every member has one."""
    owned = [partition for member in members for partition in member.owned]
    is_whole = sorted(owned) == list(range(PARTITIONS))
    return is_whole and all(member.owned for member in members)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_partitions_and_take_over(cluster, members, strategy) -> None:
    """Members join one by one, one leaves, and every record is read once."""
    for number in range(3):
        members.append(Member(cluster, f"m{number}", partition_assignment_strategy=strategy))
        until(lambda: is_shared(*members), f"{number + 1} members do not share")
    produce(cluster, range(600))
    until(lambda: sum(len(member.seen) for member in members) >= 600, "records are missing")
    first, *others = members
    first.end()
    until(lambda: is_shared(*others), "the others do not take over")
    produce(cluster, range(600, 900))
    until(lambda: sum(len(member.seen) for member in members) >= 900, "records are missing")
    seen = [value for member in members for value in member.seen]
    assert sorted(seen, key=int) == [b"%d" % value for value in range(900)]


def test_cooperative_members_keep_what_they_can(cluster, members) -> None:
    """When a second member gets half, the first one never gives up the other half."""
    members.append(Member(cluster, "m0", partition_assignment_strategy="cooperative-sticky"))
    until(lambda: is_shared(*members), "the first has not everything")
    members.append(Member(cluster, "m1", partition_assignment_strategy="cooperative-sticky"))
    until(lambda: is_shared(*members), "the two do not share")
    assert [len(revoked) for revoked in members[0].revocations] == [PARTITIONS // 2]


def test_static_member_comes_back_without_a_rebalance(cluster, members) -> None:
    """A restarted instance has its old partitions, and no other member is affected."""
    for number in range(2):
        members.append(Member(cluster, f"m{number}", group_instance_id=f"i{number}"))
        until(lambda: is_shared(*members), "they do not share")
    before = members[1].owned
    disturbed = len(members[0].assignments)
    # librdkafka does not send LeaveGroup for a static member.
    members.pop().end()
    members.append(Member(cluster, "again", group_instance_id="i1"))
    until(lambda: members[1].owned == before, "it does not have its partitions")
    assert len(members[0].assignments) == disturbed
    produce(cluster, range(60))
    until(lambda: sum(len(member.seen) for member in members) == 60, "records are missing")


def test_second_member_with_instance_id_fences_the_first(cluster, members) -> None:
    """The first member of an instance id gets an error when a second one joins, and stops."""
    members.append(Member(cluster, "first", group_instance_id="i"))
    until(lambda: is_shared(*members), "the first member has no partitions")
    members.append(Member(cluster, "second", group_instance_id="i"))
    until(lambda: members[1].owned == set(range(PARTITIONS)), "the second member has no partitions")
    first = members.pop(0)
    until(lambda: not first.is_alive(), "the first member did not stop")
    assert first.error is not None
    assert "fenced" in first.error.str()


def test_group_survives_a_restart_of_the_broker(cluster, members) -> None:
    """Members keep their partitions and offsets: no member joins again, and no record is read
    twice.
    """
    for number in range(2):
        members.append(Member(cluster, f"m{number}"))
        until(lambda: is_shared(*members), "they do not share")
    produce(cluster, range(60))
    until(lambda: sum(len(member.seen) for member in members) == 60, "records are missing")
    assignments = [list(member.assignments) for member in members]
    cluster.restart()
    produce(cluster, range(60, 120))
    until(lambda: sum(len(member.seen) for member in members) >= 120, "records are missing")
    assert [member.assignments for member in members] == assignments
    seen = [value for member in members for value in member.seen]
    assert sorted(seen, key=int) == [b"%d" % value for value in range(120)]


def test_offsets_of_a_group_without_members_survive_a_restart(cluster) -> None:
    """A new member resumes from the offset that the old one committed."""
    produce(cluster, range(60))
    member = Member(cluster)
    until(lambda: len(member.seen) == 60, "records are missing")
    member.end()
    cluster.restart()
    produce(cluster, range(60, 66))
    member = Member(cluster)
    until(lambda: len(member.seen) >= 6, "records are missing")
    member.end()
    assert sorted(member.seen) == [b"%d" % value for value in range(60, 66)]


def test_three_clients_in_one_group(cluster, members) -> None:
    """librdkafka, kafka-python and aiokafka agree on `range` and share the partitions."""
    produce(cluster, range(60))
    members.append(Member(cluster, partition_assignment_strategy="range"))
    plain = PlainMember(cluster)
    owned: dict[str, set[int]] = {}

    async def aio() -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        await consumer.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    owned["aio"] = {item.partition for item in consumer.assignment()}
                    values = [members[0].owned, plain.owned, owned["aio"]]
                    if sorted(item for part in values for item in part) == list(
                        range(PARTITIONS)
                    ) and all(values):
                        return
                    await consumer.getmany(timeout_ms=50)
        finally:
            await consumer.stop()

    try:
        asyncio.run(aio())
        until(lambda: is_shared(members[0], plain), "the others do not take over")
        assert members[0].owned.isdisjoint(plain.owned)
    finally:
        plain.end()


class PlainMember(threading.Thread):
    """A consumer of kafka-python on a thread of its own."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name="kafka-python", daemon=True)
        self.bootstrap = cluster.bootstrap
        self.owned: set[int] = set()
        self.seen: list[bytes] = []
        self._ends = threading.Event()
        self.start()

    def run(self) -> None:
        consumer = kafka.KafkaConsumer(
            "t",
            bootstrap_servers=self.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )
        while not self._ends.is_set():
            # If a poll ends in the middle of a rebalance, kafka-python 3.0 loses the response.
            for records in consumer.poll(timeout_ms=1000).values():
                self.seen.extend(record.value for record in records)
            self.owned = {item.partition for item in consumer.assignment()}
        consumer.close()

    def end(self) -> None:
        """Leave the group."""
        self._ends.set()
        self.join(PATIENCE_S)


def test_members_of_kafka_python_share_and_commit(cluster) -> None:
    """Two members read every record; the next one resumes after them."""
    produce(cluster, range(120))
    first, second = PlainMember(cluster), PlainMember(cluster)
    until(lambda: len(first.seen) + len(second.seen) >= 120, "records are missing")
    until(lambda: is_shared(first, second), "they do not share")
    first.end()
    until(lambda: is_shared(second), "the other does not take over")
    second.end()
    consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id="g")
    committed = [
        consumer.committed(kafka.TopicPartition("t", number)) for number in range(PARTITIONS)
    ]
    consumer.close()
    assert committed == [20] * PARTITIONS


async def test_members_of_aiokafka_share_and_commit(cluster) -> None:
    """Two members read every record; other clients see the committed offsets."""
    produce(cluster, range(120))
    consumers = [
        AIOKafkaConsumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        for _ in range(2)
    ]
    seen: set[bytes] = set()
    for consumer in consumers:
        await consumer.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < 120:
                for consumer in consumers:
                    for records in (await consumer.getmany(timeout_ms=50)).values():
                        seen.update(record.value for record in records)
        owned = [{item.partition for item in consumer.assignment()} for consumer in consumers]
        assert sorted(owned[0] | owned[1]) == list(range(PARTITIONS))
        for consumer in consumers:
            await consumer.commit()
        topic_partition = next(iter(consumers[0].assignment()))
        assert await consumers[0].committed(topic_partition) == 20
    finally:
        for consumer in consumers:
            await consumer.stop()


def test_operator_sees_and_changes_groups(cluster, members) -> None:
    """librdkafka's admin client lists and describes groups, reads and alters offsets, and deletes."""
    produce(cluster, range(60))
    members.append(Member(cluster))
    until(lambda: len(members[0].seen) == 60, "records are missing")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert [(item.group_id, item.state.name) for item in listed.valid] == [("g", "STABLE")]
    described = admin.describe_consumer_groups(["g"])["g"].result(PATIENCE_S)
    assert described.partition_assignor == "range"
    partitions = described.members[0].assignment.topic_partitions
    assert {item.partition for item in partitions} == set(range(PARTITIONS))
    with pytest.raises(confluent_kafka.KafkaException, match="not empty"):
        admin.delete_consumer_groups(["g"])["g"].result(PATIENCE_S)
    members.pop().end()
    moved = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 3)])
    admin.alter_consumer_group_offsets([moved])["g"].result(PATIENCE_S)
    requested = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0), TopicPartition("t", 1)])
    offset = admin.list_consumer_group_offsets([requested])["g"].result(PATIENCE_S)
    assert [item.offset for item in offset.topic_partitions] == [3, 10]
    admin.delete_consumer_groups(["g"])["g"].result(PATIENCE_S)
    assert admin.list_consumer_groups().result(PATIENCE_S).valid == []

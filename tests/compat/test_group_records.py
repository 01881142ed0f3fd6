"""The topic __consumer_offsets: Apache Kafka's tools read Ottla's, and Ottla reads Apache Kafka's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.base.clock import RealClock
from ottla.coordinators.groups.offsets import CommittedOffset
from ottla.coordinators.groups.shard import GroupShard
from ottla.testing.cluster import Cluster
from ottla.wire.records.records import iterate_records
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PATIENCE_S = 30.0


def consume(bootstrap: str, *, instance: str | None = None) -> Consumer:
    """Let a member read ten records and commit them; it stays in its group."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce("t", value=b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings | ({"group.instance.id": instance} if instance else {}))
    consumer.subscribe(["t"])
    assert len(consumer.consume(10, PATIENCE_S)) == 10
    topic_partition = TopicPartition("t", 0, 10, metadata="behind all", leader_epoch=0)
    consumer.commit(offsets=[topic_partition], asynchronous=False)
    return consumer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster of one that keeps its files."""
    options = {"offsets.topic.num.partitions": "3"}
    with Cluster(data=tmp_path / "data", options=options) as running:
        yield running


def offsets_logs(folder: Path) -> list[Path]:
    """Return the segments of __consumer_offsets that have records."""
    result = folder.glob("__consumer_offsets-*/*.log")
    return sorted(path for path in result if path.stat().st_size)


def test_kafkas_dump_reads_our_groups(cluster: Cluster) -> None:
    """Apache Kafka's decoder reads keys, offsets, members and assignments."""
    consume(cluster.bootstrap).close()
    cluster.restart()
    files = offsets_logs(Path(cluster.data))
    output = java.run(
        java.kafka_class_path(),
        "kafka.tools.DumpLogSegments",
        "--offsets-decoder",
        "--files",
        ",".join(map(str, files)),
    )
    assert '"group":"g","topic":"t","partition":0' in output
    assert '"offset":10,"leaderEpoch":0,"metadata":"behind all' in output
    assert '"protocolType":"consumer","generation":1,"protocol":"range"' in output
    assert '"generation":2,"protocol":null,"leader":null' in output
    assert "isvalid: false" not in output


def test_kafkas_command_describes_our_groups(cluster: Cluster) -> None:
    """`kafka-consumer-groups` lists and describes groups and members, and cannot delete an active
    group.
    """
    consumer = consume(cluster.bootstrap, instance="i")

    def command(*arguments: str) -> list[list[str]]:
        server = ("--bootstrap-server", cluster.bootstrap)
        message = java.run(java.kafka_class_path(), COMMAND, *server, *arguments)
        return [line.split() for line in message.splitlines() if line.strip()]

    assert command("--list", "--state")[-1] == ["g", "Stable"]
    (row,) = [row for row in command("--describe", "--group", "g") if row[:2] == ["g", "t"]]
    assert row[2:6] == ["0", "10", "10", "0"]
    (row,) = [row for row in command("--describe", "--group", "g", "--members") if row[0] == "g"]
    assert row[1].startswith("i-")
    assert row[2:4] == ["i", "/127.0.0.1"]
    row = command("--describe", "--group", "g", "--state")[-1]
    assert (row[0], row[-2:]) == ("g", ["Stable", "1"])
    message = [" ".join(row) for row in command("--delete", "--group", "g")]
    assert any("not empty" in line for line in message)
    consumer.close()


def test_we_read_the_groups_of_apache_kafka(tmp_path: Path) -> None:
    """Replaying Kafka's own log restores the offsets and the group of its clients."""
    kafka = java.KafkaNode(tmp_path)
    kafka.start()
    try:
        consume(kafka.bootstrap, instance="i").close()
    finally:
        kafka.stop()
    shard = GroupShard(None, RealClock(), lambda: None)  # type: ignore[arg-type]
    for path in offsets_logs(kafka.data):
        for record in iterate_records(path.read_bytes()):
            shard.replay(record)
    actual = shard.offsets.of_group("g")[("t", 0)]
    assert actual.commit_timestamp_ms > 0
    # librdkafka's Python binding includes the terminating zero of its C string.
    text = actual.metadata.rstrip("\0")
    expected = CommittedOffset(10, 0, "behind all", actual.commit_timestamp_ms)
    assert actual._replace(metadata=text) == expected
    group = shard.metadata["g"]
    assert (group.protocol_type, group.protocol, group.generation) == ("consumer", "range", 1)
    (member,) = group.members
    assert member.group_instance_id == "i"
    assert group.leader == member.member_id
    assert member.assignment

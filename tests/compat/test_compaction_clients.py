"""Compaction while clients read and write: librdkafka with a broker whose cleaner always runs."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.slow]

OPTIONS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "20000",
}
ROUNDS_MAX = 5000


def first_segment_bytes(cluster: Cluster, name: str) -> int:
    """Return the size of a log's oldest segment."""
    while True:
        try:
            return min(cluster.data.rglob(f"{name}/*.log")).stat().st_size
        except FileNotFoundError:
            # Between two renames of a swap the file does not exist.
            continue


def group(cluster: Cluster, name: str, **settings: object) -> Consumer:
    """Return a consumer of a group."""
    return Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": name, **settings})


def test_the_last_commits_of_groups_survive_compaction(tmp_path: Path) -> None:
    """Thousands of commits are compacted to a few, and a restarted broker loads the same offsets."""
    with Cluster(data=tmp_path / "data", options=OPTIONS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 3, 1)])["t"].result(30)
        groups = {name: group(cluster, name) for name in ("one", "two")}
        last: dict[str, list[tuple[int, str]]] = {}
        for number in range(ROUNDS_MAX):
            for name, consumer in groups.items():
                if name == "two" and number > 100:
                    continue
                last[name] = [(number + index, f"{number}" * 200) for index in range(3)]
                offsets = [
                    TopicPartition("t", each, offset, metadata)
                    for each, (offset, metadata) in enumerate(last[name])
                ]
                consumer.commit(offsets=offsets, asynchronous=False)
            if number > 100 and first_segment_bytes(cluster, "__consumer_offsets-0") < 10_000:
                break
        else:
            raise AssertionError("the offsets were not compacted")
        for restarts in range(2):
            for name, consumer in groups.items():
                requested = [TopicPartition("t", index) for index in range(3)]
                actual = consumer.committed(requested, timeout=30)
                assert [(record.offset, record.metadata) for record in actual] == last[name]
                consumer.close()
            if not restarts:
                cluster.restart()
                groups = {name: group(cluster, name) for name in groups}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_consumer_reads_log_during_compaction(tmp_path: Path, codec: str) -> None:
    """Gaps and empty batches do not stop a consumer, and it has the newest value of each key."""
    with Cluster(data=tmp_path / "data", options=OPTIONS) as cluster:
        settings = {"cleanup.policy": "compact", "internal.segment.bytes": "20000"}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1, config=settings)])["t"].result(30)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
            }
        )
        newest: dict[bytes, bytes] = {}
        for number in range(ROUNDS_MAX):
            for key in range(20):
                newest[b"key-%d" % key] = b"%d-%d" % (number, key * 7)
                producer.produce("t", newest[b"key-%d" % key], b"key-%d" % key)
            assert producer.flush(30) == 0
            if number > 100 and first_segment_bytes(cluster, "t-0") < 5_000:
                break
        else:
            raise AssertionError("the log was not compacted")
        assert read_newest(cluster) == newest


def read_newest(cluster: Cluster) -> dict[bytes | None, bytes | None]:
    """Return the newest value of each key, as a consumer finds them from the beginning."""
    consumer = group(cluster, "reader", **{"enable.partition.eof": True, "check.crcs": True})
    consumer.assign([TopicPartition("t", 0, 0)])
    entries: dict[bytes | None, bytes | None] = {}
    last = -1
    try:
        while (message := consumer.poll(30)) is not None:
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                return entries
            assert message.offset() > last
            last = message.offset()
            entries[message.key()] = message.value()
    finally:
        consumer.close()
    raise AssertionError("the end of the partition was not reached")

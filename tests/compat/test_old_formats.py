"""Records that a broker before Kafka 0.11 has written, read by today's clients.

Apache Kafka 4 neither accepts nor converts the formats v0 and v1, but returns stored records in
them (KIP-724). Ottla does the same.
"""

import struct
import zlib
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ottla.testing.cluster import Cluster
from ottla.wire.records.compression import CODECS

pytestmark = [pytest.mark.compat, pytest.mark.slow]

OLD = [b"old-%d" % number for number in range(20)]
START_MS = 1_700_000_000_000


def old_segment(magic: int, codec: str) -> bytes:
    """Return the records as an old broker stored them."""
    builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
    for offset, value in enumerate(OLD):
        builder.append(offset, START_MS + offset if magic else None, None, value)
    data = builder.build()
    if codec != "none":
        struct.pack_into(">q", data, 0, len(OLD) - 1)
        struct.pack_into(">q", data, 18, START_MS + len(OLD) - 1)
        struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return bytes(data)


@pytest.fixture(params=[(0, "none"), (1, "none"), (1, "gzip"), (1, "snappy")], ids=str)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    """Return a broker whose topic `t` begins with records of an old format."""
    running = Cluster(data=tmp_path).start()
    request.addfinalizer(running.stop)
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
    running.stop()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(old_segment(*request.param))
    running.start()
    producer = Producer({"bootstrap.servers": running.bootstrap})
    producer.produce("t", b"new", partition=0)
    assert producer.flush(30) == 0
    return running


def test_librdkafka_reads_old_records_and_new_ones(cluster: Cluster) -> None:
    """librdkafka reads from the beginning, with consecutive offsets."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    values = []
    while len(values) < len(OLD) + 1:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        values.append((message.offset(), message.value()))
    consumer.close()
    assert values == list(enumerate([*OLD, b"new"]))


def test_kafka_python_reads_old_records_from_the_middle(cluster: Cluster) -> None:
    """kafka-python starts to read inside a compressed entry as well."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap, consumer_timeout_ms=20_000)
    topic_partition = PythonPartition("t", 0)
    consumer.assign([topic_partition])
    consumer.seek(topic_partition, 7)
    values = []
    for record in consumer:
        values.append((record.offset, record.value))
        if record.value == b"new":
            break
    consumer.close()
    assert values == list(enumerate([*OLD, b"new"]))[7:]

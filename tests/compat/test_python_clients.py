"""confluent-kafka, kafka-python and aiokafka with `ottla up`: one specification for all three."""

import json
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.process import BrokerProcess, run_command
from tests.compat.clients import PYTHON_CLIENTS, Client, ToWrite

pytestmark = [
    pytest.mark.compat,
    # Sockets and loops that the clients leave to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
]
each_client = pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.name)
each_codec = pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])


def _records(count: int, start: int = 0) -> list[ToWrite]:
    return [
        ToWrite(
            key=b"key-%d" % (number % 7),
            value=b'{"number": %d, "text": "%s"}' % (number, b"abc" * 10),
            headers=(("trace", b"%d" % number),),
        )
        for number in range(start, start + count)
    ]


@each_codec
@each_client
def test_group_reads_records_of_any_codec(
    broker: BrokerProcess, topic: str, client: Client, codec: str
) -> None:
    """The topic is created at the first use; keys, values, headers, order and codec are kept."""
    records = _records(300)
    client.write(broker.bootstrap, topic, records, codec)
    actual = client.read(broker.bootstrap, topic, f"group-of-{topic}", len(records))
    assert [row.offset for row in actual] == list(range(len(records)))
    assert [(row.key, row.value, row.headers) for row in actual] == [
        (record.key, record.value, record.headers) for record in records
    ]
    (segment,) = (broker.data / f"{topic}-0").glob("*.log")
    dumped = run_command("log", "dump", str(segment), "--output", "json").stdout.splitlines()
    # kafka-python does not compress a batch if the codec would make it longer.
    assert {json.loads(line)["codec"] for line in dumped} - {"none"} == {codec} - {"none"}


@each_client
def test_group_resumes_after_restart_of_client_and_broker(
    broker: BrokerProcess, topic: str, client: Client
) -> None:
    """Committed records are not read again, by a new client and after a restart of the broker."""
    client.write(broker.bootstrap, topic, _records(30), "none")
    group = f"group-of-{topic}"
    first = client.read(broker.bootstrap, topic, group, 10)
    second = client.read(broker.bootstrap, topic, group, 10)
    broker.restart()
    third = client.read(broker.bootstrap, topic, group, 10)
    offsets = [row.offset for row in [*first, *second, *third]]
    assert offsets == list(range(30))


@each_client
def test_reading_starts_at_timestamp(broker: BrokerProcess, topic: str, client: Client) -> None:
    """A lookup returns the first record at or after the timestamp, if timestamps are not in order."""
    start = 1_700_000_000_000
    records = [
        ToWrite(key=None, value=b"%d" % number, partition=0, timestamp=start + 1000 * number)
        for number in range(100)
    ]
    client.write(broker.bootstrap, topic, records, "none")
    actual = client.read_since(broker.bootstrap, topic, start + 41_500, 3)
    assert [(row.value, row.timestamp) for row in actual] == [
        (b"%d" % number, start + 1000 * number) for number in (42, 43, 44)
    ]


@each_client
def test_a_key_is_in_the_same_partition_for_every_client(
    broker: BrokerProcess, topic: str, client: Client
) -> None:
    """Each client spreads keys over twelve partitions, and every record is read exactly once."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=12)])[topic].result(30)
    records = _records(600)
    client.write(broker.bootstrap, topic, records, "none")
    actual = client.read(broker.bootstrap, topic, f"group-of-{topic}", len(records))
    by_key: dict[Any, list[Any]] = {}
    for row in actual:
        by_key.setdefault(row.key, []).append(row)
    assert {len({row.partition for row in rows}) for rows in by_key.values()} == {1}
    for key, rows in by_key.items():
        assert [row.value for row in rows] == [row.value for row in records if row.key == key]


@pytest.mark.parametrize("writer", PYTHON_CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("reader", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_every_client_reads_records_of_every_other(
    broker: BrokerProcess, topic: str, writer: Client, reader: Client
) -> None:
    """Each client reads all codecs of every other client in one partition."""
    expected = []
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        records = _records(20, start=20 * number)
        writer.write(broker.bootstrap, topic, records, codec)
        expected += [record.value for record in records]
    actual = reader.read(broker.bootstrap, topic, f"group-of-{topic}", len(expected))
    assert [row.value for row in actual] == expected


def test_librdkafkas_admin_sees_the_cluster(broker: BrokerProcess, topic: str) -> None:
    """Dashboards and scripts can create, describe, configure, grow, list and delete topics."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    futures = admin.create_topics([NewTopic(topic, 2, config={"retention.ms": "1000"})])
    futures[topic].result(30)
    listed = admin.list_topics(timeout=30)
    assert len(listed.topics[topic].partitions) == 2
    assert [node.port for node in listed.brokers.values()] == [broker.port]
    resource = confluent_kafka.admin.ConfigResource("topic", topic)
    described = admin.describe_configs([resource])[resource].result(30)
    assert described["retention.ms"].value == "1000"
    grown = admin.create_partitions([confluent_kafka.admin.NewPartitions(topic, 5)])
    grown[topic].result(30)
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 5
    assert admin.describe_cluster().result(30).controller.port == broker.port
    admin.delete_topics([topic])[topic].result(30)
    assert topic not in admin.list_topics(timeout=30).topics

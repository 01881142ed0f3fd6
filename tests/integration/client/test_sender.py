"""Records that a broker rejects, and sent records that librdkafka reads."""

import time
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError
from ottla.client import sender as sender_module
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender, SendSettings
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows
from ottla.wire.records.compression import CODECS
from tests.unit.client.topics import Topic


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the delays between attempts."""
    monkeypatch.setattr(sender_module, "_PAUSE_S", 0.001)


@pytest.fixture
def topic(broker: Any) -> Topic:
    """Return an empty topic of two partitions."""
    return Topic("t", partitions=2).serve_from(broker)


def _rows(first: int, end: int) -> Rows:
    values = pa.array([b"%04d" % number for number in range(first, end)], pa.binary())
    return Rows(values, None, None, np.full(end - first, 1000 * (int(time.time()) - 60)))


def _values(first: int, end: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, end)]


def _send_asked(cluster: Cluster, values: list[bytes], batch_bytes: int) -> list[bytes]:
    """Send records to `small`; return those that were rejected and skipped."""
    refused: list[bytes] = []
    with (
        Brokers(cluster.bootstrap) as brokers,
        ColumnSender(
            brokers,
            SendSettings(batch_bytes=batch_bytes),
            on_refused=lambda _topic, rows, _error: refused.extend(rows.values.to_pylist()),
        ) as sender,
    ):
        times = np.full(len(values), int(time.time()) * 1000)
        sender.send("small", 0, Rows(pa.array(values, pa.binary()), None, None, times))
        sender.flush()
        assert sender.records_sent == len(values) - len(refused)
    return refused


@pytest.mark.parametrize("batch_bytes", [300, 1_000_000])
@pytest.mark.parametrize("large", [[], [0], [299], [7, 8, 150], list(range(300))])
def test_rejected_records_are_found_and_skipped(
    ottla_cluster: Cluster, large: list[int], batch_bytes: int
) -> None:
    """A batch is halved until the broker accepts it; the others are written in order and in
    sequence.
    """
    ottla_cluster.create_topic("small", config={"max.message.bytes": "2000"})
    values = [b"%04d" % number for number in range(300)]
    for number in large:
        values[number] += b"x" * 3000
    refused = _send_asked(ottla_cluster, values, batch_bytes)
    assert refused == [values[number] for number in large]
    table = read_table("small", bootstrap=ottla_cluster.bootstrap, columns=("value",))
    expected = [value for value in values if len(value) < 100]
    assert table.column("value").to_pylist() == expected


def test_callback_for_rejected_records_can_raise(ottla_cluster: Cluster) -> None:
    """The exception propagates to the caller."""
    ottla_cluster.create_topic("small", config={"max.message.bytes": "2000"})

    def refuse(topic: str, rows: Rows, error: ApiError) -> None:
        raise error

    with (
        Brokers(ottla_cluster.bootstrap) as brokers,
        ColumnSender(brokers, on_refused=refuse) as sender,
        pytest.raises(ApiError, match="small-0 refuses"),
    ):
        values = pa.array([b"x" * 3000], pa.binary())
        sender.send("small", 0, Rows(values, None, None, np.array([1000 * int(time.time())])))
        sender.flush()


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_the_sent_records(ottla_cluster: Cluster, codec: str) -> None:
    """The consumer of another client checks and decodes every batch, in every codec."""
    with (
        Brokers(ottla_cluster.bootstrap) as brokers,
        ColumnSender(brokers, SendSettings(batch_bytes=2000, compression=CODECS[codec])) as sender,
    ):
        assert sender.partition_count("real") == 1
        sender.send("real", 0, _rows(0, 1000))
        sender.flush()
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": ottla_cluster.bootstrap, "group.id": "g", "check.crcs": True}
    )
    consumer.assign([confluent_kafka.TopicPartition("real", 0, 0)])
    values: list[bytes] = []
    while len(values) < 1000:
        messages = consumer.consume(1000, 10)
        assert messages, "nothing came for ten seconds"
        values += [message.value() for message in messages]
    consumer.close()
    assert values == _values(0, 1000)

"""What is sent is written once and in order, whatever the brokers do meanwhile."""

import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import sender as sender_module
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable
from ottla.client.sender import ColumnSender, SendSettings
from ottla.client.table import read_table
from ottla.testing.cluster import Cluster
from ottla.wire.records import batch
from ottla.wire.records.columnar_encoding import Rows
from ottla.wire.records.compression import CODECS
from tests.unit.client.topics import Topic

SMALL = SendSettings(batch_bytes=200, timeout_s=5.0)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another at once."""
    monkeypatch.setattr(sender_module, "_PAUSE_S", 0.001)


@pytest.fixture
def topic(broker: Any) -> Topic:
    """An empty topic of two partitions."""
    return Topic("t", partitions=2).serve_from(broker)


def _rows(first: int, end: int) -> Rows:
    values = pa.array([b"%04d" % number for number in range(first, end)], pa.binary())
    return Rows(values, None, None, np.full(end - first, 1000 * (int(time.time()) - 60)))


def _values(first: int, end: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, end)]


def _send(broker: Any, settings: SendSettings = SMALL, count: int = 300) -> int:
    with (
        Brokers(broker.bootstrap, timeout_s=5.0) as brokers,
        ColumnSender(brokers, settings) as sender,
    ):
        for first in range(0, count, 50):
            sender.send("t", 0, _rows(first, first + 50))
            sender.send("t", 1, _rows(first, first + 5))
        sender.flush()
        return sender.records_sent


def test_rows_are_written_in_order(broker: Any, topic: Topic) -> None:
    """Every row of every partition arrives, in the order it was sent in, in sequence."""
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)
    assert len(topic.values(1)) == 30
    headers = [batch.parse_header(each) for each in topic.batches[0]]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(7, 0)}
    assert [header.base_sequence for header in headers] == [
        header.base_offset for header in headers
    ]


def test_batches_are_acknowledged_by_all_replicas(broker: Any, topic: Topic) -> None:
    """acks is all, and codecs are as asked for."""
    _send(broker, SendSettings(compression=CODECS["lz4"]))
    requests = [request for name, _, request in broker.requests if name == "Produce"]
    assert {request.acks for request in requests} == {-1}
    assert {batch.parse_header(each).compression for each in topic.batches[0]} == {CODECS["lz4"]}
    assert topic.values(0) == _values(0, 300)


@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        None,
    ],
)
def test_passing_failures_lose_and_double_nothing(
    broker: Any, topic: Topic, failure: ErrorCode | None
) -> None:
    """Batches behind a refused one are sent again with it, in order."""
    none = ErrorCode.NONE
    topic.failures["Produce"] = [none, none, failure, none, none, none, failure, failure]
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)
    assert len(topic.values(1)) == 30


def test_lost_answers_leave_no_doubles(broker: Any, topic: Topic) -> None:
    """A batch that was written though its answer was lost is sent again, and dropped by the broker."""
    topic.lost_answers = 3
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)


def test_the_leader_is_followed(new_broker: Callable[..., Any]) -> None:
    """What the old leader refuses goes to the new one."""
    old, new = new_broker(node_id=0), new_broker(node_id=1)
    old.peers = new.peers = [old, new]
    topic = Topic("t").serve_from(old, new)
    with Brokers(old.bootstrap) as brokers, ColumnSender(brokers, SMALL) as sender:
        sender.send("t", 0, _rows(0, 100))
        sender.flush()
        topic.leader = 1
        sender.send("t", 0, _rows(100, 200))
        sender.flush()
    assert topic.values() == _values(0, 200)
    assert "Produce" in new.names()


def test_a_leader_that_moves_before_the_first_batch_is_followed(
    new_broker: Callable[..., Any],
) -> None:
    """The leaders of a topic are learned together; one that is not the leader any more is found out by writing."""
    old, new = new_broker(node_id=0), new_broker(node_id=1)
    old.peers = new.peers = [old, new]
    topic = Topic("t", partitions=2).serve_from(old, new)
    with Brokers(old.bootstrap) as brokers, ColumnSender(brokers, SMALL) as sender:
        sender.send("t", 0, _rows(0, 100))
        sender.flush()
        topic.leader = 1
        sender.send("t", 1, _rows(100, 200))
        sender.flush()
    assert topic.values(1) == _values(100, 200)
    assert "Produce" in new.names()


def test_the_leaders_of_a_topic_are_asked_for_once(broker: Any) -> None:
    """Writing to fifty partitions takes one question, not fifty with fifty answers each."""
    Topic("t", partitions=50).serve_from(broker)
    with Brokers(broker.bootstrap) as brokers, ColumnSender(brokers, SMALL) as sender:
        for partition in range(50):
            sender.send("t", partition, _rows(0, 1))
        sender.flush()
        assert sender.records_sent == 50
    assert broker.names().count("Metadata") == 1


def test_an_error_that_does_not_pass_is_raised(broker: Any, topic: Topic) -> None:
    """A batch that is too large will not get smaller; the message says what helps."""
    topic.failures["Produce"] = [ErrorCode.MESSAGE_TOO_LARGE]
    with pytest.raises(ApiError, match=r"t-0 refuses.*max\.message\.bytes") as caught:
        _send(broker)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def _send_asked(cluster: Cluster, values: list[bytes], batch_bytes: int) -> list[bytes]:
    """Send records to `small`; return those that were refused, and left out."""
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
def test_records_that_are_refused_are_found_and_left_out(
    ottla_cluster: Cluster, large: list[int], batch_bytes: int
) -> None:
    """A batch is halved until the broker takes it; the others are written, in order and in sequence."""
    ottla_cluster.create_topic("small", config={"max.message.bytes": "2000"})
    values = [b"%04d" % number for number in range(300)]
    for number in large:
        values[number] += b"x" * 3000
    refused = _send_asked(ottla_cluster, values, batch_bytes)
    assert refused == [values[number] for number in large]
    found = read_table("small", bootstrap=ottla_cluster.bootstrap, columns=("value",))
    expected = [value for value in values if len(value) < 100]
    assert found.column("value").to_pylist() == expected


def test_whoever_is_asked_may_end_it(ottla_cluster: Cluster) -> None:
    """What is raised there comes out."""
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


def test_failures_that_do_not_end_are_raised(broker: Any, topic: Topic) -> None:
    """After the time-out the last failure is told."""
    topic.failures["Produce"] = [ErrorCode.NOT_ENOUGH_REPLICAS] * 100_000
    with pytest.raises(ApiError) as caught:
        _send(broker, SendSettings(timeout_s=0.1))
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    topic.failures["Produce"] = [None] * 100_000
    with pytest.raises(NotReachable):
        _send(broker, SendSettings(timeout_s=0.1))


def test_the_number_of_partitions_is_asked_for(broker: Any, topic: Topic) -> None:
    """Topics are created by asking for them, where the cluster does so."""
    with Brokers(broker.bootstrap, timeout_s=0.2) as brokers, ColumnSender(brokers) as sender:
        assert sender.partition_count("t") == 2
        with pytest.raises(ApiError, match="no topic 'other'"):
            sender.partition_count("other")
    requests = [request for name, _, request in broker.requests if name == "Metadata"]
    assert all(request.allow_auto_topic_creation for request in requests)


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_what_was_sent(ottla_cluster: Cluster, codec: str) -> None:
    """Another client's consumer checks and decodes every batch, in every codec."""
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

"""Records are written once and in order, whatever the brokers do."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import sender as sender_module
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable
from ottla.client.sender import ColumnSender, SendSettings
from ottla.wire.records import batch
from ottla.wire.records.columnar_encoding import Rows
from ottla.wire.records.compression import CODECS
from tests.unit.client.topics import Topic

SMALL = SendSettings(batch_bytes=200, timeout_s=5.0)


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
    """Every row of every partition arrives in order, with consecutive sequence numbers."""
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)
    assert len(topic.values(1)) == 30
    headers = [batch.parse_header(stored) for stored in topic.batches[0]]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(7, 0)}
    assert [header.base_sequence for header in headers] == [
        header.base_offset for header in headers
    ]


def test_batches_are_acknowledged_by_all_replicas(broker: Any, topic: Topic) -> None:
    """Requests have acks=all, and batches have the configured codec."""
    _send(broker, SendSettings(compression=CODECS["lz4"]))
    requests = [request for name, _, request in broker.requests if name == "Produce"]
    assert {request.acks for request in requests} == {-1}
    assert {batch.parse_header(stored).compression for stored in topic.batches[0]} == {
        CODECS["lz4"]
    }
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
def test_transient_failures_neither_lose_nor_duplicate_records(
    broker: Any, topic: Topic, failure: ErrorCode | None
) -> None:
    """Batches after a rejected one are sent again with it, in order."""
    none = ErrorCode.NONE
    topic.failures["Produce"] = [none, none, failure, none, none, none, failure, failure]
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)
    assert len(topic.values(1)) == 30


def test_lost_responses_cause_no_duplicates(broker: Any, topic: Topic) -> None:
    """A batch whose response was lost is sent again, and the broker drops the duplicate."""
    topic.lost_answers = 3
    assert _send(broker) == 330
    assert topic.values(0) == _values(0, 300)


def test_the_leader_is_followed(new_broker: Callable[..., Any]) -> None:
    """A batch that the old leader rejects is sent to the new one."""
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


def test_leader_change_before_the_first_batch_is_followed(
    new_broker: Callable[..., Any],
) -> None:
    """The leaders of a topic are looked up together; a stale one is detected when it is written to."""
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


def test_leaders_of_a_topic_are_looked_up_once(broker: Any) -> None:
    """Writing to fifty partitions takes one metadata request, not fifty."""
    Topic("t", partitions=50).serve_from(broker)
    with Brokers(broker.bootstrap) as brokers, ColumnSender(brokers, SMALL) as sender:
        for partition in range(50):
            sender.send("t", partition, _rows(0, 1))
        sender.flush()
        assert sender.records_sent == 50
    assert broker.names().count("Metadata") == 1


def test_permanent_error_is_raised(broker: Any, topic: Topic) -> None:
    """A batch that is too large cannot succeed later; the message has advice."""
    topic.failures["Produce"] = [ErrorCode.MESSAGE_TOO_LARGE]
    with pytest.raises(ApiError, match=r"t-0 refuses.*max\.message\.bytes") as caught:
        _send(broker)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_persistent_failures_are_raised(broker: Any, topic: Topic) -> None:
    """After the timeout the last failure is raised."""
    topic.failures["Produce"] = [ErrorCode.NOT_ENOUGH_REPLICAS] * 100_000
    with pytest.raises(ApiError) as caught:
        _send(broker, SendSettings(timeout_s=0.1))
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    topic.failures["Produce"] = [None] * 100_000
    with pytest.raises(NotReachable):
        _send(broker, SendSettings(timeout_s=0.1))


def test_number_of_partitions_is_looked_up(broker: Any, topic: Topic) -> None:
    """If the cluster creates topics automatically, the lookup creates the topic."""
    with Brokers(broker.bootstrap, timeout_s=0.2) as brokers, ColumnSender(brokers) as sender:
        assert sender.partition_count("t") == 2
        with pytest.raises(ApiError, match="no topic 'other'"):
            sender.partition_count("other")
    requests = [request for name, _, request in broker.requests if name == "Metadata"]
    assert all(request.allow_auto_topic_creation for request in requests)

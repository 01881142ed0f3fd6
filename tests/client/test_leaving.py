"""Partitions that leave a consumer: only offsets of records that it has returned are committed."""

import gc
import itertools
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client import (
    AdminClient,
    Consumer,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from ottla.client.admin.offsets import CommittedOffset, commit_offsets, committed_offsets
from ottla.client.brokers import Brokers
from ottla.client.consumer import membership
from ottla.client.errors import Closed
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, fill, poll_until

pytestmark = pytest.mark.slow

COUNT = 60
ASSIGNORS = ["range", "cooperative-sticky", "sticky"]


class Committer(RebalanceListener):
    """Commits positions when partitions are revoked."""

    def __init__(self) -> None:
        self.consumer: Consumer
        self.revoked: list[TopicPartition] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit."""
        self.revoked += partitions
        self.consumer.commit()


def committing_consumer(cluster: Cluster, topic: str, **settings: Any) -> tuple[Consumer, Any]:
    """Return a consumer of a full topic, and its listener, which commits."""
    fill(cluster, topic, [b"%d" % number for number in range(COUNT)])
    listener = Committer()
    listener.consumer = consumer_of(cluster, group_id=topic, **settings)
    listener.consumer.subscribe(topic, listener=listener)
    return listener.consumer, listener


def committed(cluster: Cluster, topic: str) -> int:
    """Return the sum of the offsets that the group has committed."""
    with consumer_of(cluster, group_id=topic) as other:
        offsets = other.committed([(topic, number) for number in range(3)])
        return sum(row.offset for row in offsets.values())


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_close_commits_no_record_that_was_not_returned(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """The listener commits at the close, after commits in the background have ended."""
    settings = {"enable_auto_commit": False, "partition_assignment_strategy": strategy}
    consumer, _ = committing_consumer(cluster, topic, max_poll_records=5, **settings)
    for _ in itertools.islice(consumer, 10):
        consumer.commit_async()
    consumer.close()
    assert committed(cluster, topic) == 10


def test_close_in_the_loop_ends_the_iteration(cluster: Cluster, topic: str) -> None:
    """The loop ends without an error, as with kafka-python."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    consumer = consumer_of(cluster, topic, group_id=topic)
    values = []
    for record in consumer:
        values.append(record.value)
        consumer.close()
    assert len(values) == 1


def test_close_ends_if_librdkafka_does_not_leave(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After the time that Kafka's `close` waits, too, the consumer is closed, and the log says it."""
    monkeypatch.setattr(membership, "LEAVE_S", 0.1)
    consumer, listener = committing_consumer(cluster, topic)
    list(itertools.islice(consumer, 10))
    stuck = threading.Event()
    inner = consumer._membership._consumer
    consumer._membership._consumer = SimpleNamespace(
        assignment=inner.assignment,
        pause=inner.pause,
        consume=inner.consume,
        close=stuck.wait,
    )
    try:
        consumer.close()
    finally:
        stuck.set()
        inner.close()
    assert listener.revoked
    assert "has not left its group within 0.1 s" in caplog.text
    with pytest.raises(Closed):
        consumer.poll(0)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_listener_commits_only_what_iteration_has_returned(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Records of the last poll that are left belong to the next owner."""
    settings = {"enable_auto_commit": False, "partition_assignment_strategy": strategy}
    consumer, _ = committing_consumer(cluster, topic, **settings)
    assert len(list(itertools.islice(consumer, 10))) == 10
    consumer.close()
    assert committed(cluster, topic) == 10


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_unsubscribe_commits_only_what_iteration_has_returned(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Unread records of the last poll are forgotten after the commit."""
    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    fill(cluster, topic, [b"%d" % number for number in range(COUNT)])
    with consumer_of(cluster, topic, **settings) as consumer:
        assert len(list(itertools.islice(consumer, 10))) == 10
        consumer.unsubscribe()
        assert (consumer.assignment, consumer.subscription) == (frozenset(), ())
        assert committed(cluster, topic) == 10


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_unsubscribe_calls_the_listener_once(cluster: Cluster, topic: str, strategy: str) -> None:
    """It is called at once, and can commit; the next subscription has its own revocation."""
    settings = {"enable_auto_commit": False, "partition_assignment_strategy": strategy}
    consumer, listener = committing_consumer(cluster, topic, **settings)
    assert len(list(itertools.islice(consumer, 10))) == 10
    consumer.unsubscribe()
    everything = [(topic, number) for number in range(3)]
    assert listener.revoked == everything
    assert committed(cluster, topic) == 10
    consumer.subscribe(topic, listener=listener)
    poll_until(consumer, lambda: len(consumer.assignment) == 3)
    assert listener.revoked == everything
    consumer.unsubscribe()
    consumer.close()
    assert listener.revoked == 2 * everything


@pytest.mark.parametrize("end", ["break", "return", "exception in the loop", "exception"])
def test_end_of_a_loop_decides_about_the_last_record(
    cluster: Cluster, topic: str, end: str
) -> None:
    """A loop that ends by itself has processed it; an exception that leaves the block has not."""
    fill(cluster, topic, [b"%d" % number for number in range(COUNT)])

    def process() -> None:
        with consumer_of(cluster, topic, group_id=topic) as consumer:
            for number, _ in enumerate(consumer, 1):
                try:
                    if number == 10 and "exception" in end:
                        raise RuntimeError("the application fails")
                except RuntimeError:
                    if end == "exception":
                        raise
                if number == 10 and end == "return":
                    return
                if number == 10:
                    break

    with pytest.raises(RuntimeError) if end == "exception" else nullcontext():
        process()
    assert committed(cluster, topic) == (0 if end == "exception" else 10)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_listener_that_unsubscribes_is_called_once(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Its own call of `unsubscribe` does not call it again."""
    calls: list[int] = []

    class Leaving(RebalanceListener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            calls.append(len(partitions))
            consumer.unsubscribe()

    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    with consumer_of(cluster, **settings) as consumer:
        consumer.subscribe(topic, listener=Leaving())
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()
    assert calls == [3]


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_commit_without_metadata_stores_none(cluster: Cluster, topic: str, strategy: str) -> None:
    """As Java's, it is empty for every client that reads it."""
    fill(cluster, topic, [b"0"])
    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    with consumer_of(cluster, topic, **settings) as consumer:
        poll_until(consumer, lambda: bool(consumer.positions()))
        consumer.commit()
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        committed = admin.list_group_offsets(topic)
    assert {row.metadata for row in committed.values()} == {""}


@pytest.mark.parametrize(
    "settings",
    [
        *({"partition_assignment_strategy": name} for name in ASSIGNORS),
        {"group_protocol": "consumer"},
    ],
)
def test_metadata_is_committed_as_it_is(
    cluster: Cluster, topic: str, settings: dict[str, Any]
) -> None:
    """Clients of other languages read the same text, however it was committed."""
    fill(cluster, topic, [b"0", b"1"])
    texts = []
    with (
        consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False, **settings) as one,
        Brokers(cluster.bootstrap) as brokers,
    ):
        poll_until(one, lambda: bool(one.positions()))
        key = min(one.positions())
        ended = threading.Event()
        one.commit({key: OffsetAndMetadata(1, "note é")})
        texts.append(committed_offsets(brokers, topic)[key].metadata)
        one.commit_async({key: OffsetAndMetadata(1, "later")}, callback=lambda *_: ended.set())
        poll_until(one, ended.is_set)
        texts.append(committed_offsets(brokers, topic)[key].metadata)
    assert texts == ["note é", "later"]


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_metadata_of_other_clients_is_read_as_it_is(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """The binding of librdkafka expects a NUL character at the end: only it writes one."""
    key = TopicPartition(topic, 0)
    with (
        consumer_of(cluster, group_id=topic, partition_assignment_strategy=strategy) as consumer,
        Brokers(cluster.bootstrap) as brokers,
    ):
        for length in range(1, 40):
            text = "é" * length
            commit_offsets(brokers, topic, {key: CommittedOffset(length, -1, text)})
            assert consumer.committed([key]) == {key: OffsetAndMetadata(length, text)}


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_dropped_consumer_leaves_no_thread(cluster: Cluster, topic: str, strategy: str) -> None:
    """The thread of its offsets does not keep it in the group."""
    fill(cluster, topic, [b"0"])
    before = set(threading.enumerate())

    def use_and_drop() -> None:
        settings = {"group_id": topic, "partition_assignment_strategy": strategy}
        consumer = consumer_of(cluster, topic, **settings)
        poll_until(consumer, lambda: bool(consumer.positions()))
        consumer.commit()
        consumer.committed()

    use_and_drop()
    started = set(threading.enumerate()) - before
    (thread,) = (row for row in started if row.name == "ottla-offsets")
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()

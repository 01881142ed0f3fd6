"""The consumer against a broker: positions, commits, seeks, rebalances, errors."""

import itertools
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ottla.base.errors import ApiError
from ottla.client import (
    Consumer,
    ConsumerInterceptor,
    ConsumerRecord,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    Serdes,
    SqliteOffsetStore,
    TopicPartition,
)
from ottla.client.errors import ClientError, Closed, DeserializationError
from ottla.testing import Cluster

PATIENCE_S = 20.0


def fill(cluster: Cluster, topic: str, values: Iterable[bytes], **settings: Any) -> None:
    """Write values to partitions 0, 1, 2 in turn, with their number as the timestamp."""
    arguments = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    with Producer(arguments | settings) as producer:
        futures = [
            producer.send(topic, value, partition=number % 3, timestamp=1000 + number)
            for number, value in enumerate(values)
        ]
    assert all(future.exception() is None for future in futures)


def consumer_of(cluster: Cluster, *topics: str, **settings: Any) -> Consumer:
    """Return a consumer that reads from the beginning.

    It notices rebalances and fetch positions sooner than by default, for which its tests wait.
    """
    arguments = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    intervals = {"fetch_max_wait_ms": 50}
    if settings.get("group_protocol") != "consumer":
        intervals["heartbeat_interval_ms"] = 100
    return Consumer(*topics, **(arguments | intervals | settings))


def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Poll until there are `count` records."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.poll(0.2)
    return records


def poll_until(consumer: Consumer, is_done: Callable[[], bool]) -> None:
    """Poll without expecting records until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline
        consumer.poll(0.05)


def values_of(records: Iterable[ConsumerRecord]) -> list[bytes]:
    """Return the values in order."""
    return sorted(record.value for record in records)


def test_group_reads_every_record_once(cluster: Cluster, topic: str) -> None:
    """A record has its topic, partition, offset, timestamp, key, value and headers."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        records = read(consumer, 9)
        assert consumer.assignment == {(topic, 0), (topic, 1), (topic, 2)}
        assert consumer.subscription == (topic,)
    assert values_of(records) == [b"%d" % number for number in range(9)]
    record = next(row for row in records if row.value == b"4")
    assert (record.topic, record.partition, record.offset, record.key) == (topic, 1, 1, None)
    assert (record.timestamp, record.timestamp_type, record.headers) == (1004, "create", ())
    assert "value=b&#x27;4&#x27;" not in record._repr_html_()
    assert "<td>4</td>" in record._repr_html_()


def test_next_member_resumes_after_close(cluster: Cluster, topic: str) -> None:
    """Positions are committed when the consumer is closed: the next offset, not the last one."""
    fill(cluster, topic, [b"%d" % number for number in range(6)])
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        read(consumer, 6)
    fill(cluster, topic, [b"new"])
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        assert values_of(read(consumer, 1)) == [b"new"]
        assert consumer.committed()[TopicPartition(topic, 1)] == OffsetAndMetadata(2)


def test_record_in_progress_is_read_again_after_an_error(cluster: Cluster, topic: str) -> None:
    """Iteration counts a record as processed when the next one is requested."""
    fill(cluster, topic, [b"a", b"b", b"c"])
    seen: list[bytes] = []
    for limit in (2, 3):
        with pytest.raises(RuntimeError), consumer_of(cluster, topic, group_id=topic) as consumer:
            for record in consumer:
                seen.append(record.value)
                if len(seen) == limit:
                    raise RuntimeError("the application fails")
                consumer.commit(record)
    assert len(seen) == 3
    assert seen[1] == seen[2] or set(seen) == {b"a", b"b", b"c"}
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        left = read(consumer, 2)
    assert seen[0] not in values_of(left)


def test_positions_count_only_what_iteration_has_returned(cluster: Cluster, topic: str) -> None:
    """Records that were fetched but not returned are not committed."""
    fill(cluster, topic, [b"%d" % number for number in range(30)])
    with consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer:
        received = list(itertools.islice(consumer, 10))
        committed = consumer.commit()
        assert sum(row.offset for row in committed.values()) == 10
        assert consumer.committed() == committed
        assert len(received) + len(read(consumer, 20)) == 30


def test_commits_take_records_positions_and_offsets(cluster: Cluster, topic: str) -> None:
    """Each form commits the next offset; metadata is kept."""
    fill(cluster, topic, [b"%d" % number for number in range(6)])
    results: list[Any] = []
    with consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer:
        records = read(consumer, 6)
        first = next(row for row in records if row.topic_partition == (topic, 0))
        assert consumer.commit(first) == {(topic, 0): OffsetAndMetadata(1)}
        assert consumer.commit({(topic, 1): OffsetAndMetadata(1, "note")})
        consumer.commit_async(records, callback=lambda *words: results.append(words))
        poll_until(consumer, lambda: bool(results))
        ((committed, error),) = results
        assert (error, len(committed)) == (None, 3)
        assert consumer.committed() == dict.fromkeys(
            ((topic, number) for number in range(3)), OffsetAndMetadata(2)
        )


def test_only_owned_partitions_are_committed(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Other partitions are skipped, and a warning names them."""
    fill(cluster, topic, [b"a"])
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.assign([(topic, 0)])
        read(consumer, 1)
        assert consumer.commit({(topic, 0): 1, (topic, 1): 5}) == {(topic, 0): (1, "")}
        assert consumer.committed([(topic, 1)]) == {}
    assert f"{topic}-1 are not committed" in caplog.text


def test_seek_by_offset_time_and_end(cluster: Cluster, topic: str) -> None:
    """Each seek decides the next record, without a group."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    key = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign([key])
        assert values_of(read(consumer, 3)) == [b"0", b"3", b"6"]
        consumer.seek(key, 1)
        assert consumer.positions() == {key: 1}
        assert values_of(read(consumer, 2)) == [b"3", b"6"]
        consumer.seek_to_beginning()
        assert len(read(consumer, 3)) == 3
        consumer.seek_to_time(1004)
        assert values_of(read(consumer, 1)) == [b"6"]
        consumer.seek_to_end()
        assert consumer.poll(0.2) == []
        assert consumer.offsets_for_times({key: 1004, (topic, 1): 2000}) == {
            key: 2,
            (topic, 1): None,
        }
        assert (consumer.beginning_offsets([key]), consumer.end_offsets([key])) == (
            {key: 0},
            {key: 3},
        )
        assert consumer.partitions_for(topic) == [0, 1, 2]
        with pytest.raises(ClientError, match="not assigned"):
            consumer.seek((topic, 1), 0)


def test_seek_to_an_end_leaves_no_position(cluster: Cluster, topic: str) -> None:
    """As in Java, the old position is neither the next one to read nor committed."""
    fill(cluster, topic, [b"0"])
    with consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer:
        read(consumer, 1)
        consumer.seek_to_beginning()
        assert (consumer.positions(), consumer.commit()) == ({}, {})


def test_seek_before_the_first_poll(cluster: Cluster, topic: str) -> None:
    """An assignment may name its offsets, and a seek before the first poll replaces them."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with consumer_of(cluster) as consumer:
        consumer.assign({(topic, 0): 2, (topic, 1): 1})
        consumer.seek((topic, 0), 1)
        assert values_of(read(consumer, 4)) == [b"3", b"4", b"6", b"7"]


def test_paused_partition_returns_nothing(cluster: Cluster, topic: str) -> None:
    """During the pause other partitions are read; after `resume` it continues."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        consumer.pause([(topic, 0)])
        assert values_of(read(consumer, 3)) == [b"1", b"4", b"7"]
        consumer.resume()
        assert values_of(read(consumer, 3)) == [b"0", b"3", b"6"]


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_pattern_subscribes_to_matching_topics(cluster: Cluster, topic: str, strategy: str) -> None:
    """The whole name must match."""
    for name in ("a", "b", "b-old"):
        cluster.create_topic(f"{strategy}-{name}", partitions=3)
        fill(cluster, f"{strategy}-{name}", [name.encode()])
    settings = {"partition_assignment_strategy": strategy}
    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        consumer.subscribe(pattern=rf"{strategy}-[a-z]")
        assert values_of(read(consumer, 2)) == [b"a", b"b"]


_PROTOCOLS = pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": "range"},
        {"partition_assignment_strategy": "sticky"},
        {"group_protocol": "consumer"},
    ],
    ids=["range", "sticky", "consumer"],
)


@_PROTOCOLS
def test_patterns_exclude_internal_topics(
    cluster: Cluster, topic: str, settings: dict[str, Any]
) -> None:
    """As in Kafka, a member reads them only if they are named, or by exclude.internal.topics."""
    internal = "__consumer_offsets"
    fill(cluster, topic, [b"one"])
    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        consumer.subscribe(pattern=".*")
        poll_until(consumer, lambda: topic in {key.topic for key in consumer.assignment})
        assert internal not in {key.topic for key in consumer.assignment}
    with consumer_of(cluster, internal, group_id=f"{topic}-named", **settings) as consumer:
        poll_until(consumer, lambda: internal in {key.topic for key in consumer.assignment})


def test_internal_topics_are_subscribed_to_by_name_first(cluster: Cluster, topic: str) -> None:
    """A consumer that ignores them says how to read them."""
    consumer = consumer_of(cluster, topic, group_id=topic)
    with pytest.raises(ClientError, match="exclude_internal_topics=False"), consumer:
        consumer.subscribe(["__consumer_offsets", topic])
    settings = {"group_id": topic, "exclude_internal_topics": False}
    with consumer_of(cluster, **settings) as consumer:
        consumer.subscribe("__consumer_offsets")
        poll_until(consumer, lambda: bool(consumer.assignment))


@_PROTOCOLS
def test_digits_in_a_pattern_match_or_are_refused(
    cluster: Cluster, topic: str, settings: dict[str, Any]
) -> None:
    """librdkafka's own groups read the escape as the letter d, so the error has another form."""
    names = topic.split("-")[-1]
    cluster.create_topic(f"{names}-17", partitions=3)
    fill(cluster, f"{names}-17", [b"a"])
    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        if names == "range":
            with pytest.raises(ClientError, match=r"do not have \\d; write \[0-9\]"):
                consumer.subscribe(pattern=rf"{names}-\d+")
            consumer.subscribe(pattern=rf"{names}-[0-9]+")
        else:
            consumer.subscribe(pattern=re.compile(rf"{names}-\d+"))
        assert values_of(read(consumer, 1)) == [b"a"]
        with pytest.raises(ClientError, match="flags are not supported"):
            consumer.subscribe(pattern=re.compile(names, re.IGNORECASE))


class Observer(RebalanceListener):
    """Remembers what it observes; seeks on assignment."""

    def __init__(self) -> None:
        self.assigned: list[TopicPartition] = []
        self.revoked: list[TopicPartition] = []
        self.on_assigned: Callable[[list[TopicPartition]], None] = lambda partitions: None

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Remember the partitions."""
        self.assigned += partitions
        self.on_assigned(partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Remember the partitions."""
        self.revoked += partitions


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.RangeAssignor"},
        {"partition_assignment_strategy": "roundrobin"},
        {"partition_assignment_strategy": "cooperative-sticky"},
        {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.StickyAssignor"},
        {"group_protocol": "consumer"},
    ],
)
def test_two_members_share_the_partitions(
    cluster: Cluster, settings: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """Each assignor gives each member some; the listener observes it, and what was committed stays."""
    topic = "shared-" + str(abs(hash(request.node.name)))
    cluster.create_topic(topic, partitions=4)
    arguments = {"group_id": topic, "heartbeat_interval_ms": 100, **settings}
    if "group_protocol" in settings:
        del arguments["heartbeat_interval_ms"]
    first, second = (consumer_of(cluster, **arguments) for _ in range(2))
    observers = Observer(), Observer()
    first.subscribe(topic, listener=observers[0])
    poll_until(first, lambda: len(first.assignment) == 4)
    second.subscribe(topic, listener=observers[1])
    deadline = time.monotonic() + 30
    while not (len(first.assignment) == len(second.assignment) == 2):
        assert time.monotonic() < deadline
        first.poll(0.05)
        second.poll(0.05)
    assert first.assignment | second.assignment == {(topic, number) for number in range(4)}
    assert len(observers[0].revoked) in (2, 4)
    second.close()
    poll_until(first, lambda: len(first.assignment) == 4)
    first.close()
    assert set(observers[1].revoked) == set(observers[1].assigned)


def test_listener_may_seek(cluster: Cluster, topic: str) -> None:
    """A seek in `on_partitions_assigned` decides where partitions start."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    observer = Observer()
    with consumer_of(cluster, group_id=topic) as consumer:
        observer.on_assigned = lambda rows: [consumer.seek(row, 2) for row in rows] and None
        consumer.subscribe([topic], listener=observer)
        assert values_of(read(consumer, 3)) == [b"6", b"7", b"8"]


def test_own_offset_store_is_exactly_once(cluster: Cluster, topic: str) -> None:
    """Results and offsets are in one transaction: a crash between records duplicates nothing."""
    fill(cluster, topic, [b"%d" % number for number in range(30)])
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE results (value TEXT)")
    store = SqliteOffsetStore(database)
    for crash_after in (7, 11, 12):
        with consumer_of(cluster, topic, group_id=topic, offset_store=store) as consumer:
            for count, record in enumerate(consumer, 1):
                with database:
                    database.execute("INSERT INTO results VALUES (?)", (record.value.decode(),))
                    store.save(record)
                if count == crash_after:
                    break
    rows = [int(value) for (value,) in database.execute("SELECT value FROM results")]
    assert sorted(rows) == list(range(30))
    database.close()


def test_record_that_cannot_be_deserialized_can_be_skipped(cluster: Cluster, topic: str) -> None:
    """Records before it are returned, then an error has its position, until the caller seeks past
    it.
    """
    numbers = [Serdes.long().serialize(number) for number in range(2)]
    settings = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    with Producer(settings) as producer:
        for value in (numbers[0], b"not a long", numbers[1]):
            producer.send(topic, value, partition=0)
    with consumer_of(cluster, value_deserializer="long") as consumer:
        consumer.assign([(topic, 0)])
        assert [row.value for row in read(consumer, 1)] == [0]
        for _ in range(2):
            with pytest.raises(DeserializationError, match="seek to offset 2") as caught:
                read(consumer, 1)
        assert consumer.positions() == {(topic, 0): 1}
        consumer.seek((caught.value.topic, caught.value.partition), caught.value.offset + 1)
        assert [row.value for row in read(consumer, 1)] == [1]


def test_interceptors_change_records_and_observe_commits(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They form a chain; one that raises is logged and skipped."""
    fill(cluster, topic, [b"keep", b"drop", b"keep"])
    committed: list[Any] = []

    class Filter(ConsumerInterceptor):
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [record for record in records if record.value != b"drop"]

        def on_commit(self, offsets: Any) -> None:
            committed.append(offsets)

    class Upper(ConsumerInterceptor):
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [row.with_values(row.key, row.value.upper()) for row in records]

    class Broken(ConsumerInterceptor):
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            raise RuntimeError("no")

    chain = [Filter(), Broken, Upper]
    with consumer_of(cluster, topic, group_id=topic, interceptors=chain) as consumer:
        assert values_of(read(consumer, 2)) == [b"KEEP", b"KEEP"]
        poll_until(consumer, lambda: len(consumer.positions()) == 3)
        consumer.commit()
    assert len(committed[0]) == 3
    assert "Broken failed" in caplog.text


def test_interceptor_without_a_result_loses_no_records(cluster: Cluster, topic: str) -> None:
    """The error names it; positions do not advance, and the records are returned afterwards."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    results: list[Any] = [5, None]

    class Forgetful(ConsumerInterceptor):
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return results.pop() if results else records

    with consumer_of(cluster, topic, group_id=topic, interceptors=[Forgetful()]) as consumer:
        for result in ("None", "5"):
            with pytest.raises(ClientError, match=f"Forgetful returned {result} from on_consume"):
                read(consumer, 1)
        assert sum(consumer.positions().values()) == 0
        assert len(read(consumer, 9)) == 9


def test_ctrl_c_ends_a_poll(cluster: Cluster, topic: str) -> None:
    """A poll that waits is interrupted within 200 ms, and the consumer can be closed."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        timer = threading.Timer(0.3, interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(30)
        assert time.monotonic() - sent[0] < 0.2


def test_interrupt_calls_the_listener_and_leaves_the_group(cluster: Cluster, topic: str) -> None:
    """The listener runs in the interrupted thread, nothing is committed, and others take over."""
    fill(cluster, topic, [b"a", b"b", b"c"])
    threads: list[Any] = []

    class Listener(Observer):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            threads.append((threading.current_thread(), len(partitions)))

    with (
        pytest.raises(KeyboardInterrupt),
        consumer_of(cluster, topic, group_id=topic, listener=Listener()) as consumer,
    ):
        read(consumer, 3)
        raise KeyboardInterrupt
    assert threads == [(threading.current_thread(), 3)]
    with consumer_of(cluster, topic, group_id=topic) as consumer:
        assert values_of(read(consumer, 3)) == [b"a", b"b", b"c"]


def test_listener_commits_when_the_consumer_is_closed(cluster: Cluster, topic: str) -> None:
    """It is called in the thread that closes."""
    fill(cluster, topic, [b"a", b"b", b"c"])
    threads: list[Any] = []

    class Listener(Observer):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            threads.append(threading.current_thread())
            consumer.commit()

    consumer = consumer_of(cluster, group_id=topic, enable_auto_commit=False)
    consumer.subscribe(topic, listener=Listener())
    read(consumer, 3)
    consumer.close()
    assert threads == [threading.current_thread()]
    with consumer_of(cluster, group_id=topic) as other:
        assert len(other.committed([(topic, number) for number in range(3)])) == 3


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_listener_learns_at_the_close_that_the_last_poll_is_too_long_ago(
    topic_of_strict_cluster: tuple[Cluster, str], strategy: str
) -> None:
    """Other members may own the partitions already: they are lost, not revoked."""
    cluster, topic = topic_of_strict_cluster
    busy = threading.Event()
    calls: list[Any] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            calls.append(("revoked", partitions))

        def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
            calls.append(("lost", partitions))

    settings = {"session_timeout_ms": 300, "max_poll_interval_ms": 300}
    settings["partition_assignment_strategy"] = strategy
    consumer = consumer_of(cluster, group_id=topic, **settings)
    consumer.subscribe(topic, listener=Listener())
    poll_until(consumer, lambda: len(consumer.assignment) == 1)
    busy.wait(0.4)  # the application is busy
    consumer.close()
    assert calls == [("lost", [(topic, 0)])]
    assert "max.poll.interval.ms is 300" in str(consumer.departure)


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_wrong_pattern_is_a_sentence(cluster: Cluster, strategy: str) -> None:
    """The error quotes it."""
    settings = {"group_id": "patterns", "partition_assignment_strategy": strategy}
    with (
        consumer_of(cluster, **settings) as consumer,
        pytest.raises(ClientError, match=r"cannot subscribe to '\^\(ord\[\)\$'"),
    ):
        consumer.subscribe(pattern="ord[")


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_late_poll_is_explained(
    topic_of_strict_cluster: tuple[Cluster, str], strategy: str
) -> None:
    """A member that polls too late learns why it lost its partitions, and rejoins."""
    cluster, topic = topic_of_strict_cluster
    observer, lost = Observer(), threading.Event()
    settings = {"session_timeout_ms": 900, "max_poll_interval_ms": 900}
    settings["partition_assignment_strategy"] = strategy
    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        consumer.subscribe(topic, listener=observer)
        poll_until(consumer, lambda: len(consumer.assignment) == 1)
        lost.wait(1.5)  # the application is busy
        poll_until(consumer, lambda: bool(observer.revoked))
        reason = consumer.departure
        assert reason is not None
        assert "max.poll.interval.ms is 900" in reason
        poll_until(consumer, lambda: len(observer.assigned) == 2)


@pytest.fixture
def topic_of_strict_cluster() -> Any:
    """A cluster that accepts short session timeouts, and a topic."""
    with Cluster(options={"group.min.session.timeout.ms": "100"}) as cluster:
        cluster.create_topic("strict")
        yield cluster, "strict"


def test_use_after_close_raises(cluster: Cluster, topic: str) -> None:
    """Every method says that the consumer is closed; closing it again is allowed."""
    consumer = consumer_of(cluster, topic, group_id=topic)
    consumer.close()
    consumer.close()
    for call in (consumer.poll, consumer.commit, consumer.positions, lambda: next(iter(consumer))):
        with pytest.raises(Closed, match="the consumer is closed"):
            call()


def test_wrong_use_is_explained(cluster: Cluster, topic: str) -> None:
    """Each error says what to do."""
    with consumer_of(cluster) as consumer:
        with pytest.raises(ClientError, match="needs group_id"):
            consumer.subscribe(topic)
        consumer.assign([(topic, 0)])
        with pytest.raises(ClientError, match="commits need group_id"):
            consumer.commit()
    settings = {"allow_auto_create_topics": False}
    with consumer_of(cluster, **settings) as consumer, pytest.raises(ApiError):
        consumer.partitions_for("no-such-topic")
    with pytest.raises(ClientError, match=r"did you mean 'max\.poll\.records'"):
        consumer_of(cluster, max_poll_recods=1)


def test_polls_return_batches_of_bounded_size(cluster: Cluster, topic: str) -> None:
    """A poll returns at most max.poll.records, and too few to cost a garbage collection."""
    fill(cluster, topic, [b"a"] * 1000)
    for settings, most in (({}, 500), ({"max_poll_records": 7}, 7)):
        with consumer_of(cluster, **settings) as consumer:
            consumer.assign([(topic, number) for number in range(3)])
            sizes = []
            while sum(sizes) < 1000:
                sizes.append(len(consumer.poll(1.0)))
            assert max(sizes) <= most

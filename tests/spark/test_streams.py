"""Topologies on Spark: restarts, growing topics, errors and punctuators."""

import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.client.arrow_table import read_table
from ottla.streams import (
    Processor,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    Topology,
    TopologyError,
)
from ottla.streams.spark.layout.envelopes import Slots
from ottla.streams.spark.query.failures import QueryError
from ottla.streams.spark.query.query import StreamsQuery, start
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXT = Serdes.string()


def _counting(source: str, target: str, store: str = "counts") -> Topology:
    """Count values: a stateless stage, a shuffle, and a stateful stage."""
    builder = StreamsBuilder()
    values = builder.stream(source, key=_TEXT, value=_TEXT)
    counted = values.group_by(lambda value: value, key=_TEXT, value=_TEXT).count(store)
    counted.to_stream().map_values(str).to(target, key=_TEXT, value=_TEXT)
    return builder.build()


def _start(
    topology: Topology, spark: SparkSession, broker: Cluster, checkpoint: Path
) -> StreamsQuery:
    return start(
        topology,
        spark,
        application_id="app",
        bootstrap=broker.bootstrap,
        checkpoint=str(checkpoint),
    )


def _records(*values: str) -> list[TopicRecord]:
    return [TopicRecord(None, value.encode(), 1_000_000) for value in values]


def _create(broker: Cluster, *topics: str, partitions: int = 1) -> None:
    for topic in topics:
        broker.create_topic(topic, partitions=partitions, config={"retention.ms": "-1"})


def test_a_topology_continues_where_it_stopped(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The counts include both runs; each is written to the partition of its key."""
    _create(broker, "going-words", "going-counted", partitions=3)
    for _ in range(2):
        scenarios.produce(broker.bootstrap, {"going-words": _records(*"abacabad" * 50)})
        with _start(_counting("going-words", "going-counted"), spark, broker, tmp_path) as query:
            query.process_all_available()
    rows = read_table("going-counted", bootstrap=broker.bootstrap).to_pylist()
    counts = {row["key"]: int(row["value"]) for row in rows}
    assert counts == {b"a": 400, b"b": 200, b"c": 100, b"d": 100}
    # Every update is written once and in order.
    assert [int(row["value"]) for row in rows if row["key"] == b"b"] == list(range(1, 201))
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    group = ConsumerGroupTopicPartitions("app")
    (response,) = client.list_consumer_group_offsets([group]).values()
    read = {partition.topic: 0 for partition in response.result().topic_partitions}
    for partition in response.result().topic_partitions:
        read[partition.topic] += partition.offset
    # The progress of the second run is committed within half a second, unless it ends before.
    assert read.keys() == {"going-words"}
    assert read["going-words"] in (400, 800)
    with pytest.raises(ConfigError, match=r"(?s)renamed-repartition.*application_id"):
        _start(_counting("going-words", "going-counted", "renamed"), spark, broker, tmp_path)


def _produce(broker: Cluster, topic: str, words: str) -> None:
    """Write each letter with itself as key, to the partition that Kafka's clients choose."""
    settings = {"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"}
    producer = Producer(settings)
    for word in words:
        producer.produce(topic, word, word, timestamp=1_000_000)
    assert producer.flush(30) == 0


def test_topics_of_a_pattern_can_be_created_later_and_grow(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """This works during and between runs: keys keep their counts, and no record is missed."""
    builder = StreamsBuilder()
    stream = builder.stream(re.compile("grown-[ab]"), key=_TEXT, value=_TEXT)
    stream.group_by_key().count("n").to_stream().map_values(str).to("sum", key=_TEXT, value=_TEXT)
    topology, words = builder.build(), "abcdefgh"
    _create(broker, "grown-a", partitions=2)
    _create(broker, "sum")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with _start(topology, spark, broker, tmp_path) as query:
        _produce(broker, "grown-a", words)
        query.process_all_available()
        _create(broker, "grown-b", partitions=3)
        admin.create_partitions([NewPartitions("grown-a", 5)])["grown-a"].result()
        _produce(broker, "grown-a", words)
        _produce(broker, "grown-b", words)
        query.process_all_available()
    admin.create_partitions([NewPartitions("grown-b", 4)])["grown-b"].result()
    _produce(broker, "grown-b", words)
    with _start(topology, spark, broker, tmp_path) as query:
        query.process_all_available()
    rows = read_table("sum", bootstrap=broker.bootstrap).to_pylist()
    entries = {
        key: [int(row["value"]) for row in rows if row["key"].decode() == key] for key in words
    }
    assert entries == {key: [1, 2, 3, 4] for key in words}


def test_a_pattern_waits_for_its_first_topic(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """A pattern need not match a topic at the start, as in Kafka Streams."""
    builder = StreamsBuilder()
    builder.stream(re.compile("awaited-.*"), key=_TEXT, value=_TEXT).to("await", key=_TEXT)
    _create(broker, "await")
    with _start(builder.build(), spark, broker, tmp_path) as query:
        query.process_all_available()
        _create(broker, "awaited-a", partitions=2)
        _produce(broker, "awaited-a", "abc")
        query.process_all_available()
    rows = read_table("await", bootstrap=broker.bootstrap).to_pylist()
    assert sorted(row["key"] for row in rows) == [b"a", b"b", b"c"]


def _fail(value: str) -> str:
    return str(1 // (len(value) - 1))


def test_an_error_shows_the_users_frames(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The error has the user's frames, but none of Spark or this package."""
    _create(broker, "fine", "failed")
    builder = StreamsBuilder()
    builder.stream("fine", key=_TEXT, value=_TEXT).map_values(_fail).to("failed")
    scenarios.produce(broker.bootstrap, {"fine": _records("x")})
    query = _start(builder.build(), spark, broker, tmp_path)
    with pytest.raises(QueryError) as caught:
        query.process_all_available()
    assert not query.is_active
    lines = str(caught.value).splitlines()
    assert lines[0] == "ZeroDivisionError: integer division or modulo by zero"
    assert lines[1].startswith("Raised at the record of topic fine, partition ")
    assert "in KSTREAM-MAPVALUES-0000000001. Fix the function" in lines[1]
    assert "test_streams.py" in lines[2]
    assert "in _fail" in lines[2]
    assert len(lines) <= 5


class _Ticking(Processor[str, str, str, str]):
    """A processor that regularly forwards the number of its records."""

    def init(self, context: Any) -> None:
        """Schedule a punctuator on the wall clock."""
        super().init(context)
        self.seen = 0
        context.schedule("500 ms", PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now: int) -> None:
        """Forward the number."""
        self.context.forward(Record("seen", str(self.seen), now))

    def process(self, record: Record[str, str]) -> None:
        """Count the record."""
        self.seen += 1


def test_wall_clock_punctuators_run_without_records(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Fields of a processor persist between micro-batches."""
    _create(broker, "ticked", "ticks")
    builder = StreamsBuilder()
    stream = builder.stream("ticked", key=_TEXT, value=_TEXT)
    stream.process(_Ticking).to("ticks", key=_TEXT, value=_TEXT)
    scenarios.produce(broker.bootstrap, {"ticked": _records("x", "y", "z")})
    with _start(builder.build(), spark, broker, tmp_path) as query:
        query.process_all_available()
        batch = query.queries[0].lastProgress.batchId
        while query.queries[0].lastProgress.batchId < batch + 2:
            assert not query.await_termination(1)
    values = [record.value for record in scenarios.read(broker.bootstrap, "ticks")]
    assert values
    assert set(values) == {b"3"}


def test_a_missing_topic_is_named_in_the_error(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The error is raised before the start."""
    with pytest.raises(TopologyError, match="topic nowhere is read but does not exist"):
        _start(_counting("nowhere", "counted"), spark, broker, tmp_path)


def test_tasks_are_spread_evenly(spark: SparkSession) -> None:
    """Spark's hash assigns task n to shuffle partition n modulo their number."""
    slots = Slots(7, 3)
    numbers = slots.of_task.tolist()
    rows = spark.createDataFrame([(each,) for each in numbers], "slot int")
    values = [row[0] for row in rows.selectExpr("pmod(hash(slot), 3)").collect()]
    assert values == [number % 3 for number in range(7)]
    assert [slots.task(each) for each in numbers] == list(range(7))
    assert slots.task(slots.carrier(5)) is None

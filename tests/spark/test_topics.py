"""The format `ottla` in Spark, as source and sink of one query."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from ottla.client.arrow_table import read_table
from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]


def _produce(broker: Cluster, topic: str, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        headers = [("number", str(number).encode()), ("none", None)]
        producer.produce(topic, b"x" * 100, key=f"{topic}/{number}", headers=headers)
    assert producer.flush(30) == 0


def test_topics_of_a_pattern_are_copied_once_with_headers_and_visible_lag(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """A later topic is discovered; other clients see the progress; batches are limited."""
    broker.create_topic("birds-1", partitions=2)
    broker.create_topic("flown", partitions=3)
    _produce(broker, "birds-1", 300)
    options = {"bootstrap": broker.bootstrap}
    rows = (
        spark.readStream.format("ottla")
        .options(**options, subscribePattern="birds-.*", startingOffsets="earliest")
        .options(maxBytesPerTrigger="20000", includeHeaders="true", **{"group.id": "birds"})
        .load()
        .select("key", "value", "headers")
    )
    writer = rows.writeStream.format("ottla").options(**options, topic="flown")
    writer = writer.option("processingGuarantee", "exactly_once")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        assert len([progress for progress in query.recentProgress if progress.numInputRows]) > 1
        broker.create_topic("birds-2")
        _produce(broker, "birds-2", 50)
        while query.lastProgress.numInputRows or "birds-2" not in query.lastProgress.json:
            query.processAllAvailable()
            assert not query.awaitTermination(1)
    finally:
        query.stop()
    copied = read_table(
        "flown",
        bootstrap=broker.bootstrap,
        columns=["key", "headers"],
        isolation="read_committed",
    ).to_pylist()
    expected = [(f"birds-1/{n}", n) for n in range(300)] + [(f"birds-2/{n}", n) for n in range(50)]
    assert sorted((row["key"].decode(), row["headers"][0]["value"].decode()) for row in copied) == (
        sorted((key, str(number)) for key, number in expected)
    )
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    group = confluent_kafka.ConsumerGroupTopicPartitions("birds")
    (response,) = client.list_consumer_group_offsets([group]).values()
    offsets = {
        (topic_partition.topic, topic_partition.partition): topic_partition.offset
        for topic_partition in response.result().topic_partitions
    }
    assert offsets["birds-2", 0] == 50
    assert offsets["birds-1", 0] + offsets["birds-1", 1] == 300


def test_workers_do_not_collect_modules_after_each_task(spark: SparkSession) -> None:
    """A Spark worker that has loaded Ottla freezes its modules, so that collections skip them."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        import ottla.streams.spark  # noqa: F401  what a source, a sink or a stage loads

        yield from (pa.record_batch([[gc.get_freeze_count()]], ["frozen"]) for _ in batches)

    (row,) = spark.range(1).coalesce(1).mapInArrow(count, "frozen long").collect()
    assert row.frozen > 50_000


def test_workers_receive_large_rows_in_small_batches(spark: SparkSession) -> None:
    """A batch ends at 2 MiB, before Spark's 10 000 rows, because its memory is reused."""

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (pa.record_batch([[batch.nbytes]], ["size"]) for batch in batches)

    rows = spark.range(0, 8000, 1, 1).selectExpr("repeat('x', 1000) AS value")
    actual = [row.size for row in rows.mapInArrow(sizes, "size long").collect()]
    assert len(actual) >= 4
    assert max(actual) < 2.1 * 1024 * 1024

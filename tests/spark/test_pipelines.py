"""Topics as data frames with a real Spark: all records are written and read once, in order."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ottla.client.arrow_table import read_table
from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

COUNT = 5000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _numbers(spark: SparkSession, count: int = COUNT, first: int = 0) -> DataFrame:
    """Return rows with keys, some headers, and nulls."""
    rows = spark.range(first, first + count)
    headers = sql.expr(
        "if(id % 10 = 0, array(struct('n' as key, cast(cast(id as string) as binary) as value)), "
        "cast(null as array<struct<key:string,value:binary>>))"
    )
    return rows.select(
        sql.expr("if(id % 7 = 0, null, concat('key-', id % 100))").alias("key"),
        sql.expr("if(id % 11 = 0, null, cast(id as string))").alias("value"),
        headers.alias("headers"),
    )


def _write(rows: DataFrame, broker: Cluster, topic: str, **options: str) -> None:
    writer = rows.write.format("ottla").mode("append").options(**options)
    writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic).save()


def _read(spark: SparkSession, broker: Cluster, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("ottla").options(subscribe=topic, **options)
    return reader.option("kafka.bootstrap.servers", broker.bootstrap).load()


def _stream(spark: SparkSession, broker: Cluster, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("ottla").options(subscribe=topic, **options)
    return reader.option("kafka.bootstrap.servers", broker.bootstrap).load()


def _copy(rows: DataFrame, broker: Cluster, topic: str, checkpoint: Path) -> Any:
    """Run a streaming query into a topic until all existing records are read."""
    writer = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", topic).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(90)
    return query


def test_written_rows_are_read(spark: SparkSession, broker: Cluster) -> None:
    """Keys, values, nulls and headers are equal with every codec, several partitions and tasks."""
    broker.create_topic("batch", partitions=3)
    share = COUNT // len(CODECS)
    for number, codec in enumerate(CODECS):
        rows = _numbers(spark, share, first=number * share).repartition(4)
        _write(rows, broker, "batch", **{"kafka.compression.type": codec})
    records = _read(spark, broker, "batch", includeHeaders="true", minPartitions="5")
    records = records.select(
        sql.col("key").cast("string"), sql.col("value").cast("string"), sql.col("headers")
    )
    assert records.count() == COUNT
    assert records.exceptAll(_numbers(spark)).count() == 0


def test_rows_are_appended_if_no_mode_is_set(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """As with format("kafka"); other formats keep Spark's default mode, which is an error."""
    broker.create_topic("modes")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "modes"}
    rows = _numbers(spark, 3).select("value")
    rows.write.format("ottla").options(**options).save()
    rows.write.save(format="ottla", **options)
    rows.write.format("ottla").options(**options).mode("error").save()
    assert _read(spark, broker, "modes").count() == 9
    with pytest.raises(PySparkException, match=r"cannot be overwritten: write with mode\('append'"):
        rows.write.format("ottla").options(**options).mode("overwrite").save()
    rows.write.parquet(str(tmp_path / "files"))
    with pytest.raises(PySparkException, match="already exists"):
        rows.write.save(str(tmp_path / "files"))


def test_columns_are_those_of_the_kafka_connector(spark: SparkSession, broker: Cluster) -> None:
    """Programs for format("kafka") find their columns."""
    _write(_numbers(spark, 3), broker, "columns")
    records = _read(spark, broker, "columns")
    assert records.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    rows = records.orderBy("offset").collect()
    assert [row.offset for row in rows] == [0, 1, 2]
    assert {(row.topic, row.partition, row.timestampType) for row in rows} == {("columns", 0, 0)}


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, broker: Cluster) -> None:
    """An empty topic is not an error."""
    broker.create_topic("empty")
    assert _read(spark, broker, "empty").collect() == []


def test_a_stream_continues_where_it_stopped(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """With its checkpoint, a query reads every record once in two runs, in order by partition."""
    for name in ("source", "target"):
        broker.create_topic(name, partitions=2)
    for _ in range(2):
        _write(_numbers(spark, 1000), broker, "source")
        rows = _stream(spark, broker, "source", startingOffsets="earliest")
        _copy(rows.select("value", "partition"), broker, "target", tmp_path / "checkpoint")
    columns = ["partition", "value"]
    target = read_table("target", bootstrap=broker.bootstrap, columns=columns)
    assert target.num_rows == 2000
    assert target.equals(read_table("source", bootstrap=broker.bootstrap, columns=columns))


def test_a_trigger_is_limited_by_records(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """A backlog is split into micro-batches of maxOffsetsPerTrigger."""
    _write(_numbers(spark, 1000), broker, "backlog")
    rows = _stream(spark, broker, "backlog", startingOffsets="earliest", maxOffsetsPerTrigger="300")
    query = _copy(rows.select("value"), broker, "cut", tmp_path / "checkpoint")
    sizes = [int(progress.numInputRows) for progress in query.recentProgress]
    assert [size for size in sizes if size] == [300, 300, 300, 100]
    assert query.recentProgress[0].sources[0].latestOffset


def test_windows_are_counted(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    """An event-time window with a watermark is computed over a topic and written to another one."""
    times = spark.range(600).select(
        sql.expr("cast(id as string)").alias("value"),
        sql.expr("timestamp_seconds(unix_timestamp() div 60 * 60 - 3600 + id)").alias("timestamp"),
    )
    _write(times.coalesce(1), broker, "times", includeTimestamp="true")
    rows = _stream(spark, broker, "times", startingOffsets="earliest")
    counted = rows.withWatermark("timestamp", "0 seconds").groupBy(
        sql.window("timestamp", "1 minute")
    )
    out = counted.count().select(sql.expr("cast(count as string)").alias("value"))
    _copy(out, broker, "counts", tmp_path / "checkpoint")
    counts = read_table("counts", bootstrap=broker.bootstrap, columns=["value"])
    # The last window is still open, because there is no later record.
    assert counts.column("value").to_pylist() == [b"60"] * 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "Is startingOffsets meant"),
        ({"maxOffsetsPerTrigger": "5"}, "is for reading a stream"),
        ({"endingOffsets": "begin"}, "endingOffsets cannot be"),
    ],
)
def test_invalid_options_are_reported_to_the_user(
    spark: SparkSession, broker: Cluster, options: dict[str, str], message: str
) -> None:
    """Spark passes the message to the caller."""
    with pytest.raises(PySparkException, match=message):
        _read(spark, broker, "columns", **options).collect()

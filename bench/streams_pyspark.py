"""The contender `pyspark`: hand-written queries with Spark's own Kafka connector; orders are as in
streams_ours.

With `--call-a-record` the state is called for each record, as in a stateful processor that does not
use batches. The join is with the table as it is when the query starts: Spark has no other.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.streams_orders import Order, orders
from ottla.streams.spark import session

# The settings with which the connector reads and writes fastest.
READ_TUNED = {
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "52428800",
}
WRITE_TUNED = {"kafka.linger.ms": "5", "kafka.batch.size": "262144"}
_RECORDS = "key string, value string"


class CountByRow(StatefulProcessor):
    """Counts the records of a key: one get and one update for each key of a micro-batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Number the records."""
        known = self._count.get()
        number = known[0] if known else 0
        for _ in rows:
            number += 1
            yield Row(key=key[0], value=str(number))
        self._count.update((number,))

    def close(self) -> None:
        """Close nothing: no resource is open."""


class CountByCall(StatefulProcessor):
    """Counts the records of a key: one get and one update for each record."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Number the records."""
        numbers = []
        for frame in rows:
            for _ in range(len(frame)):
                known = self._count.get()
                number = (known[0] if known else 0) + 1
                self._count.update((number,))
                numbers.append(str(number))
        yield pd.DataFrame({"key": [key[0]] * len(numbers), "value": numbers})

    def close(self) -> None:
        """Close nothing: no resource is open."""


def _upper(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        remaining = frame[[value[0] != "b" for value in frame["value"]]]
        values = [value.upper() for value in remaining["value"]]
        yield pd.DataFrame({"key": remaining["key"], "value": values})


def stateless(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Filter and map in Python."""
    return rows.select("key", "value").mapInPandas(_upper, _RECORDS)


def columns(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Filter and map in the JVM."""
    remaining = rows.where(~F.col("value").startswith("b"))
    return remaining.select("key", F.upper("value").alias("value"))


def count(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Count by key; a micro-batch emits each key's count once."""
    return rows.groupBy("key").count().select("key", F.col("count").cast("string").alias("value"))


def windowed_count(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Count by key in windows of ten seconds."""
    marked = rows.withWatermark("timestamp", "5 seconds")
    counted = marked.groupBy(F.window("timestamp", "10 seconds"), "key").count()
    start = F.unix_millis("window.start").cast("string")
    name = F.concat("key", F.lit("@"), start)
    return counted.select(name.alias("key"), F.col("count").cast("string").alias("value"))


def table_join(rows: DataFrame, table: DataFrame) -> DataFrame:
    """Join with the last value of each key."""
    last = table.groupBy("key").agg(F.max_by("value", "offset").alias("other")).persist()
    joined = rows.join(last, "key")
    return joined.select("key", F.concat("value", F.substring("other", 1, 10)).alias("value"))


def processor(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Number the records of each key."""
    grouped = rows.select("key", "value").groupBy("key")
    return grouped.transformWithState(CountByRow(), _RECORDS, "Append", "None")


def call_a_record(rows: DataFrame, _table: DataFrame) -> DataFrame:
    """Number the records of each key, with a call of the state for each."""
    grouped = rows.select("key", "value").groupBy("key")
    return grouped.transformWithStateInPandas(CountByCall(), _RECORDS, "Append", "None")


QUERIES: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    each.__name__: each
    for each in (stateless, columns, count, windowed_count, table_join, processor)
}
_UPDATES = ("count", "windowed_count")


class Runner:
    """Runs orders."""

    def __init__(
        self, spark: SparkSession, bootstrap: str, max_records: int, by_call: bool
    ) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._max_records = max_records
        self._by_call = by_call

    def _options(self, topic: str) -> dict[str, str]:
        inputs = {"kafka.bootstrap.servers": self._bootstrap, "subscribe": topic}
        return inputs | {"startingOffsets": "earliest"} | READ_TUNED

    def _texts(self, rows: DataFrame) -> DataFrame:
        texts = [F.col(name).cast("string").alias(name) for name in ("key", "value")]
        return rows.select(*texts, "timestamp", "offset")

    def __call__(self, order: Order) -> None:
        """Run one query until the next line of the input."""
        reader = self._spark.readStream.format("kafka").options(**self._options(order.source))
        rows = self._texts(reader.option("maxOffsetsPerTrigger", self._max_records).load())
        reader_of_table = self._spark.read.format("kafka").options(**self._options(order.table))
        table = self._texts(reader_of_table.load())
        query = call_a_record if self._by_call else QUERIES[order.topology]
        writer = query(rows, table).writeStream.format("kafka").options(**WRITE_TUNED)
        updates = order.topology in _UPDATES and not self._by_call
        writer = writer.outputMode("update" if updates else "append")
        writer = writer.option("kafka.bootstrap.servers", self._bootstrap)
        with tempfile.TemporaryDirectory() as folder:
            running = (
                writer.option("topic", order.sink).option("checkpointLocation", folder).start()
            )
            sys.stdin.readline()
            running.stop()
        self._spark.catalog.clearCache()


def main() -> None:
    """Run the orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--jars", required=True)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--max-records", type=int, default=200_000)
    parser.add_argument("--call-a-record", action="store_true")
    options = parser.parse_args()
    spark = session("bench", cores=options.cores, settings={"spark.jars": options.jars})
    orders(Runner(spark, options.bootstrap, options.max_records, options.call_a_record))
    spark.stop()


if __name__ == "__main__":
    main()

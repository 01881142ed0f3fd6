"""Runs a small stream that uses what pipelines use, and says how long it took; `warming` runs this.

python -m ottla.streams.spark.first_stream [JAVA OPTIONS]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from ottla.streams.spark.session import session


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def run_first_stream(spark: SparkSession, folder: Path) -> int:
    """Read JSON, pass it through Python, total it by windows, write Parquet; return the rows written."""
    (folder / "in").mkdir()
    row = '{"key": "a", "at": "2026-01-01T00:00:00Z", "number": 1}\n'
    (folder / "in" / "rows.json").write_text(row, encoding="utf-8")
    rows = spark.readStream.schema("key string, at timestamp, number int").json(str(folder / "in"))
    passed = rows.mapInArrow(_same, rows.schema).withWatermark("at", "1 minute")
    totals = passed.groupBy(sql.window("at", "1 minute"), "key").agg(sql.sum("number").alias("sum"))
    records = totals.select(sql.to_json(sql.struct("*")).alias("value"))
    writer = records.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return int(spark.read.parquet(str(folder / "out")).count())


def main(options: str) -> None:
    """Start Spark with options of Java, run the stream, and tell the seconds."""
    started = time.monotonic()
    settings = {"spark.driver.extraJavaOptions": options}
    spark = session("ottla-first-stream", settings=settings)
    with tempfile.TemporaryDirectory(prefix="ottla-first-stream-") as folder:
        run_first_stream(spark, Path(folder))
        sys.stdout.write(f"ready after {time.monotonic() - started:.1f} s\n")
    spark.stop()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))

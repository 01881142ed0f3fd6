"""Runs a small stream that uses what pipelines use, and prints how long it took; run by
`archive_writing`.

    python -m ottla.streams.spark.session.first_stream [JAVA OPTIONS]
"""

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.streams.spark.session.session import session


def run_first_stream(spark: SparkSession, folder: Path) -> int:
    """Read JSON as a stream, aggregate it, and query the totals with SQL; return their number."""
    (folder / "in").mkdir()
    (folder / "in" / "rows.json").write_text('{"key": "a"}\n', encoding="utf-8")
    rows = spark.readStream.schema("key string").json(str(folder / "in"))
    writer = rows.groupBy("key").count().writeStream.format("memory").outputMode("complete")
    writer = writer.queryName("first").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return len(spark.sql("SELECT * FROM first").collect())


def main(options: str) -> None:
    """Start Spark with options of Java, run the stream, and print the seconds."""
    started = time.monotonic()
    settings = {"spark.driver.extraJavaOptions": options}
    spark = session("ottla-first-stream", settings=settings)
    with tempfile.TemporaryDirectory(prefix="ottla-first-stream-") as folder:
        run_first_stream(spark, Path(folder))
        sys.stdout.write(f"ready after {time.monotonic() - started:.1f} s\n")
    spark.stop()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))

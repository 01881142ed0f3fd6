"""Measure how fast Spark writes topics.

`python -m bench.spark_write [--server kafka] [--jars A,B] [--rounds N]` writes two million rows of
100 bytes and half a million of 1 KB, with keys of 10 bytes, from Spark's memory into four
partitions. Then a stream copies the same rows from topic to topic in one batch, at least once and
exactly once. It prints the medians of the rounds: rows and megabytes per second, CPU microseconds
per row of Spark with its workers and of the broker. With the jars of Spark's own Kafka connector,
each round measures it, too, with default and with its best settings. Other load on the machine
changes the rows per second, but hardly the CPU time.
"""

import argparse
import statistics
import tempfile
import uuid
from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench import servers
from bench.spark_read import SHAPES, Bench, create, drain, fill, topic_of
from ottla.streams.spark import session

# The settings with which Spark's connector writes fastest.
_TUNED = {"kafka.linger.ms": "5", "kafka.batch.size": "262144"}
_GUARANTEES = ("at_least_once", "exactly_once")


def rows_of(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Return rows that are in memory: a key of 10 bytes, a value of `size` that does not repeat."""
    number = F.col("id")
    text = F.lpad(number.cast("string"), 10, "0")
    value = F.concat(*[F.sha2(F.concat(text, F.lit(part)), 512) for part in range(-(-size // 128))])
    rows = spark.range(0, count, 1, 2).select(
        text.cast("binary").alias("key"), F.substring(value, 1, size).cast("binary").alias("value")
    )
    rows.persist().count()
    return rows


class WriteBench(Bench):
    """Runs the measurements of one server and collects the figures."""

    def __init__(
        self, spark: SparkSession, server: servers.Server, formats: list[str], name: str = "copy"
    ) -> None:
        super().__init__(spark, server, formats)
        self.name = name

    def turns(self) -> Iterator[tuple[str, str, Mapping[str, str]]]:
        """Yield name, format and options of every way to write."""
        for kind in self.formats:
            yield kind, kind, {}
        if "kafka" in self.formats:
            yield "kafka tuned", "kafka", _TUNED

    def write(self, shape: str, rows: DataFrame) -> None:
        """Write one shape once in every way."""
        count = SHAPES[shape][0]
        for name, kind, options in self.turns():
            writer = rows.write.format(kind).mode("append").options(**options)
            writer = writer.options(**self._target())
            self.measure(f"{name}: write {shape}", count, writer.save)

    def copy(self, spark: SparkSession, shape: str) -> None:
        """Copy one shape from topic to topic, once with each guarantee."""
        for guarantee in _GUARANTEES:
            reader = spark.readStream.format("ottla").options(startingOffsets="earliest")
            reader = reader.options(bootstrap=self.server.bootstrap, subscribe=topic_of(shape))
            writer = reader.load().select("key", "value").writeStream.format("ottla")
            writer = writer.options(processingGuarantee=guarantee, **self._target())

            def run(writer: DataStreamWriter = writer) -> None:
                with tempfile.TemporaryDirectory() as folder:
                    query = writer.option("checkpointLocation", folder).trigger(availableNow=True)
                    query.start().awaitTermination()

            self.measure(f"ottla: copy {shape}, {guarantee}", SHAPES[shape][0], run)

    def _target(self) -> dict[str, str]:
        self.copies += 1
        target = f"{self.name}-{self.copies}-{uuid.uuid4().hex[:8]}"
        create(self.server.bootstrap, target)
        return {"topic": target, "kafka.bootstrap.servers": self.server.bootstrap}

    def report(self) -> None:
        """Print the medians, with megabytes a second."""
        print(f"{'':40} {'rows/s':>12} {'MB/s':>8} {'Spark us/row':>13} {'broker us/row':>14}")
        for name, figure in self.figures.items():
            middle = [statistics.median(column) for column in zip(*figure, strict=True)]
            size = next(size for shape, (_, size) in SHAPES.items() if shape in name)
            speed = f"{middle[0]:12,.0f} {middle[0] * size / 1e6:8,.0f}"
            print(f"{name:40} {speed} {middle[1]:13.2f} {middle[2]:14.2f}")


def main() -> None:
    """Run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["ottla", "kafka"], default="ottla")
    parser.add_argument("--jars", help="jars of Spark's Kafka connector, to be measured as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--shape", choices=list(SHAPES), help="only this one")
    parser.add_argument("--share", type=float, default=1.0, help="write only this much of them")
    parser.add_argument("--copy", action="store_true", help="also copy topics in a stream")
    options = parser.parse_args()
    for shape, (count, size) in SHAPES.items():
        SHAPES[shape] = int(count * options.share), size
    shapes = {options.shape: SHAPES[options.shape]} if options.shape else SHAPES
    server = servers.start_ottla() if options.server == "ottla" else servers.start_kafka()
    try:
        settings = {"spark.jars": options.jars} if options.jars else {}
        settings["spark.driver.memory"] = "3g"
        spark = session("bench", cores=options.cores, settings=settings)
        bench = WriteBench(spark, server, ["ottla", "kafka"] if options.jars else ["ottla"])
        if options.copy:
            for shape, (count, size) in shapes.items():
                fill(server.bootstrap, topic_of(shape), count, size)
            drain(bench.read("ottla", topic_of(next(iter(shapes)))))
        for shape, (count, size) in shapes.items():
            rows = rows_of(spark, count, size)
            # The first query compiles classes and starts workers: it is not counted.
            WriteBench(spark, server, bench.formats, "warm").write(shape, rows.limit(1000))
            for _ in range(options.rounds):
                bench.write(shape, rows)
            rows.unpersist()
        for _ in range(options.rounds if options.copy else 0):
            for shape in shapes:
                bench.copy(spark, shape)
        print(f"server {server.name}, {options.cores} cores, medians of {options.rounds} rounds")
        bench.report()
        spark.stop()
    finally:
        server.stop()


if __name__ == "__main__":
    main()

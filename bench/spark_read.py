"""Measure how fast Spark reads and writes topics.

`python -m bench.spark_read [--server kafka] [--jars A,B]` reads two million records of 100 bytes
and half a million of 1 KB in four partitions, not compressed, from the page cache into Spark's sink
`noop`, and writes them to another topic. It prints the medians of the rounds: rows per second, and
CPU microseconds per row of Spark with its workers and of the broker. With the jars of Spark's own
Kafka connector, each round measures it, too. Other load on the machine changes the rows per second,
but hardly the CPU time.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench import servers
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.streams.spark import session
from ottla.wire.records.columnar_encoding import Rows

PARTITIONS = 4
SHAPES = {"100 B": (2_000_000, 100), "1 KB": (500_000, 1000)}
FEW_COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
_CHUNK = 20_000


class Figure(NamedTuple):
    """One measurement."""

    rows_per_s: float
    spark_us: float
    broker_us: float


def fill(bootstrap: str, topic: str, count: int, size: int) -> None:
    """Create a topic and write `count` records of `size` bytes with keys of 10."""
    create(bootstrap, topic)
    chance = np.random.default_rng(1)
    noise = chance.integers(97, 122, _CHUNK + size, np.uint8).tobytes()
    values = pa.array([noise[start : start + size] for start in range(_CHUNK)], pa.binary())
    keys = pa.array([b"key%07d" % number for number in range(_CHUNK)], pa.binary())
    times = np.full(_CHUNK, time.time_ns() // 1_000_000)
    with Brokers(bootstrap) as brokers, ColumnSender(brokers) as sender:
        for chunk in range(count // _CHUNK):
            sender.send(topic, chunk % PARTITIONS, Rows(values, keys, None, times))
        sender.flush()


def create(bootstrap: str, topic: str) -> None:
    """Create a topic."""
    with Brokers(bootstrap) as brokers:
        create_topic(brokers, topic, partitions=PARTITIONS)


def spark_cpu_seconds() -> float:
    """Return the CPU time so far of the JVM and of all Python workers below it."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        if "ottla" not in process.name():
            total += used.user + used.system
    return total


class Bench:
    """Runs the measurements of one server and collects the figures."""

    def __init__(self, spark: SparkSession, server: servers.Server, formats: list[str]) -> None:
        self.spark = spark
        self.server = server
        self.formats = formats
        self.figures: dict[str, list[Figure]] = defaultdict(list)
        self.copies = 0

    def read(self, kind: str, topic: str, schema: str | None = None) -> DataFrame:
        """Return a topic as a data frame."""
        reader = self.spark.read.format(kind).option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", self.server.bootstrap)
        return (reader.schema(schema) if schema else reader).load()

    def measure(self, name: str, rows: int, work: Callable[[], None]) -> None:
        """Measure one piece of work."""
        spark_before, broker_before = spark_cpu_seconds(), self.server.cpu_seconds()
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        spark_used = spark_cpu_seconds() - spark_before
        broker_used = self.server.cpu_seconds() - broker_before
        figure = Figure(rows / seconds, spark_used / rows * 1e6, broker_used / rows * 1e6)
        self.figures[name].append(figure)

    def round(self, shape: str) -> None:
        """Read and write one shape once in every way."""
        rows = SHAPES[shape][0]
        topic = topic_of(shape)
        for kind in self.formats:
            self.measure(f"{kind}: read {shape}", rows, lambda k=kind: drain(self.read(k, topic)))
            if kind == "ottla":
                few = self.read(kind, topic, FEW_COLUMNS)
                self.measure(f"{kind}: read {shape}, 5 columns", rows, lambda f=few: drain(f))
            source = self.read(kind, topic).select("key", "value")
            self.copies += 1
            target = f"copy-{self.copies}"
            create(self.server.bootstrap, target)
            writer = source.write.format(kind).mode("append").option("topic", target)
            writer = writer.option("kafka.bootstrap.servers", self.server.bootstrap)
            self.measure(f"{kind}: read and write {shape}", rows, writer.save)

    def report(self) -> None:
        """Print the medians."""
        print(f"{'':40} {'rows/s':>12} {'Spark us/row':>13} {'broker us/row':>14}")
        for name, figure in self.figures.items():
            middle = [statistics.median(column) for column in zip(*figure, strict=True)]
            print(f"{name:40} {middle[0]:12,.0f} {middle[1]:13.2f} {middle[2]:14.2f}")


def topic_of(shape: str) -> str:
    """Return the topic that holds a shape."""
    return "source-" + shape.replace(" ", "")


def drain(rows: DataFrame) -> None:
    """Compute all rows and discard them."""
    rows.write.format("noop").mode("overwrite").save()


def main() -> None:
    """Run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["ottla", "kafka"], default="ottla")
    parser.add_argument("--jars", help="jars of Spark's Kafka connector, to be measured as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    server = servers.start_ottla() if options.server == "ottla" else servers.start_kafka()
    try:
        for shape, (count, size) in SHAPES.items():
            fill(server.bootstrap, topic_of(shape), count, size)
        settings = {"spark.jars": options.jars} if options.jars else {}
        spark = session("bench", cores=options.cores, settings=settings)
        bench = Bench(spark, server, ["ottla", "kafka"] if options.jars else ["ottla"])
        # The first query compiles classes and starts workers: it is not counted.
        for kind in bench.formats:
            drain(bench.read(kind, topic_of("100 B")))
        for _ in range(options.rounds):
            for shape in SHAPES:
                bench.round(shape)
        print(f"server {server.name}, {options.cores} cores, medians of {options.rounds} rounds")
        bench.report()
        spark.stop()
    finally:
        server.stop()


if __name__ == "__main__":
    main()

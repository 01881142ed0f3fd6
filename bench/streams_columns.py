"""Compare stateless topologies on Spark with hand-written queries: `python -m
bench.streams_columns`.

A filter and a map over text of 100 bytes in four partitions write to another topic, with the
records' timestamps. They are a topology of Column expressions (in the JVM and in Python), a
topology of lambdas, a PySpark query of Spark's functions, and one of Python UDFs. Source, sink,
trigger and size of micro-batches are the same. Each round runs every contender; its first
micro-batch is not counted. The figures are the medians of records per second and of CPU
microseconds per record of Spark with its workers, and the ratio of each topology to its query.
`bench.streams` has the query with Spark's own connector.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench import servers
from bench.spark_read import create, spark_cpu_seconds
from bench.streams_input import Input
from ottla.client.brokers import Brokers
from ottla.streams import Serdes, StreamsBuilder, Topology, col
from ottla.streams.spark import session
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.query import end_offsets, start

_MICRO_BATCH = 200_000
_TRIGGER = {"processingTime": "0 seconds"}
_TEXT = Serdes.string()
_KEYS = 100_000
_PAIRS = {
    "col()": "PySpark, functions",
    "col(), in Python": "PySpark, functions",
    "lambdas": "PySpark, Python UDFs",
}

Figure = tuple[float, float]


@dataclass(frozen=True)
class Place:
    """The topics that a turn reads and writes."""

    bootstrap: str
    source: str
    target: str


Turn = Callable[[SparkSession, Place], Figure]


def of_columns(place: Place) -> Topology:
    """Return the topology of expressions."""
    builder = StreamsBuilder()
    filtered = builder.stream(place.source, key=_TEXT, value=_TEXT).filter(
        ~col("value").starts_with("b")
    )
    filtered.map_values(col("value").upper()).to(place.target, key=_TEXT, value=_TEXT)
    return builder.build()


def of_lambdas(place: Place) -> Topology:
    """Return the topology of functions."""
    builder = StreamsBuilder()
    filtered = builder.stream(place.source, key=_TEXT, value=_TEXT).filter(
        lambda value: value[0] != "b"
    )
    filtered.map_values(lambda value: value.upper()).to(place.target, key=_TEXT, value=_TEXT)
    return builder.build()


def by_hand(rows: DataFrame) -> DataFrame:
    """Return the records mapped by Spark's functions."""
    value = F.col("value").cast("string")
    return _selected(rows.where(~value.startswith("b")), F.upper(value))


def by_udfs(rows: DataFrame) -> DataFrame:
    """Return the records mapped by Python UDFs."""
    keeps = F.udf(lambda value: value[0] != "b", "boolean")
    upper = F.udf(lambda value: value.upper(), "string")
    value = F.col("value").cast("string")
    return _selected(rows.where(keeps(value)), upper(value))


def _selected(rows: DataFrame, value: Column) -> DataFrame:
    return rows.select("key", value.alias("value"), "timestamp")


def topology_turn(make: Callable[[Place], Topology], uses_catalyst: bool = True) -> Turn:
    """Return a function that runs a topology once."""

    def turn(spark: SparkSession, place: Place) -> Figure:
        settings = QuerySettings(
            "", "", max_records=_MICRO_BATCH, trigger=_TRIGGER, uses_catalyst=uses_catalyst
        )
        with tempfile.TemporaryDirectory() as folder:
            query = start(
                make(place),
                spark,
                application_id=place.target,
                bootstrap=place.bootstrap,
                checkpoint=folder,
                query_settings=settings,
            )
            with query:
                return _measured(query.queries[0])

    return turn


def query_turn(make: Callable[[DataFrame], DataFrame]) -> Turn:
    """Return a function that runs a hand-written query once."""

    def turn(spark: SparkSession, place: Place) -> Figure:
        there = {"kafka.bootstrap.servers": place.bootstrap}
        reader = spark.readStream.format("ottla").options(**there)
        reader = reader.option("subscribe", place.source).option("startingOffsets", "earliest")
        rows = reader.option("maxOffsetsPerTrigger", str(_MICRO_BATCH)).load()
        writer = make(rows).writeStream.format("ottla").trigger(**_TRIGGER)
        writer = writer.options(**there).option("topic", place.target)
        with tempfile.TemporaryDirectory() as folder:
            writer = writer.option("includeTimestamp", "true").option("checkpointLocation", folder)
            query = writer.start()
            try:
                return _measured(query)
            finally:
                query.stop()

    return turn


def _measured(query: StreamingQuery) -> Figure:
    while query.lastProgress is None:
        query.awaitTermination(1)
    before, begin = spark_cpu_seconds(), time.perf_counter()
    first = sum(end_offsets(query.lastProgress).values())
    query.processAllAvailable()
    seconds, used = time.perf_counter() - begin, spark_cpu_seconds() - before
    last = query.lastProgress
    assert last is not None
    records = sum(end_offsets(last).values()) - first
    return records / seconds, used / records * 1e6


TURNS = {
    "col()": topology_turn(of_columns),
    "col(), in Python": topology_turn(of_columns, uses_catalyst=False),
    "PySpark, functions": query_turn(by_hand),
    "lambdas": topology_turn(of_lambdas),
    "PySpark, Python UDFs": query_turn(by_udfs),
}


def main() -> None:
    """Run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_600_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", choices=TURNS, action="append")
    options = parser.parse_args()
    server = servers.start_ottla()
    try:
        chance = np.random.default_rng(1)
        with Brokers(server.bootstrap) as brokers:
            input = Input(brokers, _KEYS)
            input.fill(chance.integers(0, _KEYS, options.records))
        spark = session("bench", cores=options.cores)
        figures: dict[str, list[Figure]] = defaultdict(list)
        names = options.only or list(TURNS)
        for number in range(options.rounds):
            for index, name in enumerate(names):
                target = f"out-{number}-{index}"
                create(server.bootstrap, target)
                where = Place(server.bootstrap, input.names.source, target)
                figures[name].append(TURNS[name](spark, where))
        spark.stop()
    finally:
        server.stop()
    report(figures, options.records, options.rounds)


def report(figures: dict[str, list[Figure]], records: int, rounds: int) -> None:
    """Print the medians and their ratios."""
    print(f"{records:,} records, medians of {rounds} rounds")
    print(f"{'':24} {'records/s':>12} {'CPU us/record':>14} {'of by hand':>11}")
    middle = {
        name: [statistics.median(column) for column in zip(*figure, strict=True)]
        for name, figure in figures.items()
    }
    for name, (rate, used) in middle.items():
        other = middle.get(_PAIRS.get(name, ""))
        ratio = "" if other is None else f"{rate / other[0]:.2f}"
        print(f"{name:24} {rate:12,.0f} {used:14.2f} {ratio:>11}")


if __name__ == "__main__":
    main()

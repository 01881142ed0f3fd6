"""Measure how fast Spark reads and writes topics with three replicas.

`python -m bench.cluster_spark [--rounds N] [--share S]` runs three Ottla brokers and three Apache
Kafka 3.9.2 brokers at the same time and alternates between them; each figure is the median of the
rounds. Spark uses the format `ottla` with both. Topics have four partitions, three replicas and
min.insync.replicas=2; every write has acks=all. It measures half a million rows of 1 KB (times
`--share`):

* read: from the topic into Spark's sink `noop`;
* write: from Spark's memory into an empty topic;
* copy: a stream from topic to topic in one batch, exactly once.

CPU time is measured for all three brokers of a cluster, and of Spark with its workers.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from bench.cluster import RESULTS, Figures, both, cpu_seconds
from bench.spark_read import SHAPES, create, drain, fill, spark_cpu_seconds
from bench.spark_write import rows_of
from ottla.streams.spark import session
from tests.process.broker_cluster import BrokerCluster

_ROWS, _SIZE = SHAPES["1 KB"]
_SESSION_MS = 18_000
_WARM_ROWS = 20_000
_LOAD_BEFORE = os.getloadavg()[0]


class SparkBench:
    """Runs the measurements on one cluster."""

    def __init__(self, spark: SparkSession, cluster: BrokerCluster, rows: DataFrame) -> None:
        self._spark = spark
        self._cluster = cluster
        self._rows = rows
        self._count = rows.count()
        self._source = f"source-{self._count}"
        fill(cluster.bootstrap, self._source, self._count, _SIZE)
        cluster.wait_in_sync(self._source)

    def round(self) -> Figures:
        """Read, write and copy once."""
        return {
            **self._measure("read", self._read),
            **self._measure("write", self._write),
            **self._measure("copy", self._copy),
        }

    def _measure(self, name: str, work: Callable[[], None]) -> Figures:
        spark_before, brokers_before = spark_cpu_seconds(), cpu_seconds(self._cluster)
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        brokers_used = cpu_seconds(self._cluster) - brokers_before
        gigabytes = self._count * _SIZE / 1e9
        return {
            f"{name} MB/s": gigabytes * 1000 / seconds,
            f"{name} CPU s/GB of brokers": brokers_used / gigabytes,
            f"{name} CPU s/GB of Spark": (spark_cpu_seconds() - spark_before) / gigabytes,
        }

    def _read(self) -> None:
        reader = self._spark.read.format("ottla").option("subscribe", self._source)
        drain(reader.option("bootstrap", self._cluster.bootstrap).load())

    def _write(self) -> None:
        writer = self._rows.write.format("ottla").mode("append")
        writer.options(bootstrap=self._cluster.bootstrap, topic=self._new_topic()).save()

    def _copy(self) -> None:
        options = {"bootstrap": self._cluster.bootstrap}
        reader = self._spark.readStream.format("ottla").options(**options, subscribe=self._source)
        rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
        writer = rows.writeStream.format("ottla").options(**options, topic=self._new_topic())
        with tempfile.TemporaryDirectory() as folder:
            query = writer.options(processingGuarantee="exactly_once", checkpointLocation=folder)
            query.trigger(availableNow=True).start().awaitTermination()

    def _new_topic(self) -> str:
        name = f"spark-{uuid.uuid4().hex}"
        create(self._cluster.bootstrap, name)
        self._cluster.wait_in_sync(name)
        return name


def table(entries: dict[str, list[Figures]], stamp: str, share: float) -> str:
    """Return a Markdown table of the medians, with the ratio to Kafka."""
    rounds, count = len(entries["ottla"]), int(_ROWS * share)
    lines = [
        f"# {stamp}: Spark and topics with three replicas",
        "",
        f"Medians of {rounds} interleaved rounds with {count:,} rows of 1 KB, load average before"
        f" {_LOAD_BEFORE:.1f}. Command: `python -m bench.cluster_spark --rounds {rounds}"
        f" --share {share:g}`.",
        "",
        "| figure | Ottla | Kafka 3.9.2 | ratio |",
        "|---|--:|--:|--:|",
    ]
    for key in entries["ottla"][0]:
        ours, theirs = (
            statistics.median(figures[key] for figures in entries[name])
            for name in ("ottla", "kafka")
        )
        lines.append(f"| {key} | {ours:.3g} | {theirs:.3g} | {ours / theirs:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and store the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="write only this much of the rows")
    options = parser.parse_args()
    spark = session("bench", cores=2, settings={"spark.driver.memory": "3g"})
    rows = rows_of(spark, int(_ROWS * options.share), _SIZE)
    warm = rows.limit(_WARM_ROWS).persist()
    entries: dict[str, list[Figures]] = {"ottla": [], "kafka": []}
    with both(_SESSION_MS, 0) as clusters:
        # The first queries compile classes and start workers: they are not counted.
        benches = {name: SparkBench(spark, cluster, warm) for name, cluster in clusters.items()}
        for bench in benches.values():
            bench.round()
        benches = {name: SparkBench(spark, cluster, rows) for name, cluster in clusters.items()}
        for number in range(options.rounds):
            for name in list(benches) if number % 2 == 0 else reversed(list(benches)):
                entries[name].append(benches[name].round())
                print(f"round {number + 1} {name}: {entries[name][-1]}", flush=True)
    spark.stop()
    stamp = time.strftime("%Y-%m-%d-%H%M%S-cluster-spark", time.gmtime())
    text = table(entries, stamp, options.share)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stamp}.json").write_text(json.dumps(entries, indent=2) + "\n")
    (RESULTS / f"{stamp}.md").write_text(text)


if __name__ == "__main__":
    main()

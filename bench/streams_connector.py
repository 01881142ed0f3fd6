"""Compare source and sink with Spark's own Kafka connector: `python -m bench.streams_connector`.

Prints rows per second as JSON. The pieces are the same as in bench.spark_read and
bench.spark_write, with the connector's default and its fastest settings. Each round runs all of
them, on a broker of their own and in another order, because each leaves work for the next one:
memory to collect and pages to write.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping

from bench import servers
from bench.spark_read import SHAPES, drain, fill, topic_of
from bench.spark_write import WriteBench, rows_of
from bench.streams_contenders import connector_jars
from bench.streams_pyspark import READ_TUNED, WRITE_TUNED
from ottla.client.admin.topics import delete_topic
from ottla.client.brokers import Brokers
from ottla.streams.spark import session

_READS = {"ottla": ("ottla", {}), "kafka": ("kafka", {}), "kafka tuned": ("kafka", READ_TUNED)}
_WRITES = {"ottla": ("ottla", {}), "kafka": ("kafka", {}), "kafka tuned": ("kafka", WRITE_TUNED)}

_Ways = Mapping[str, tuple[str, Mapping[str, str]]]


def _turns(ways: _Ways, number: int) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield name, format and options of each way, in another order in each round."""
    names = list(ways)
    first = number % len(names)
    for name in names[first:] + names[:first]:
        yield name, *ways[name]


class Sides(WriteBench):
    """Reads and writes one shape in every way."""

    def reads(self, shape: str, number: int) -> None:
        """Read a topic in each way."""
        for name, kind, options in _turns(_READS, number):
            reader = self.spark.read.format(kind).options(**options)
            reader = reader.option("kafka.bootstrap.servers", self.server.bootstrap)
            rows = reader.option("subscribe", topic_of(shape)).load()
            self.measure(f"read {shape}, {name}", SHAPES[shape][0], lambda r=rows: drain(r))

    def writes(self, shape: str, number: int) -> None:
        """Write rows from memory in each way."""
        rows = rows_of(self.spark, *SHAPES[shape])
        for name, kind, options in _turns(_WRITES, number):
            writer = rows.write.format(kind).mode("append").options(**options)
            target = self._target()
            writer = writer.options(**target)
            self.measure(f"write {shape}, {name}", SHAPES[shape][0], writer.save)
            with Brokers(self.server.bootstrap) as brokers:
                delete_topic(brokers, target["topic"])
        rows.unpersist()


def rounds(bench: Sides, count: int) -> None:
    """Read and write all shapes `count` times."""
    for number in range(count):
        for shape in SHAPES:
            print(f"source and sink, round {number + 1}: {shape}", file=sys.stderr, flush=True)
            bench.reads(shape, number)
            bench.writes(shape, number)


def main() -> None:
    """Run the measurements and print the medians as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--share", type=float, default=1.0, help="only this much of the rows")
    options = parser.parse_args()
    for shape, (count, size) in SHAPES.items():
        # Whole chunks, as they are written.
        SHAPES[shape] = max(20_000, int(count * options.share) // 20_000 * 20_000), size
    server = servers.start_ottla()
    try:
        for shape, (count, size) in SHAPES.items():
            fill(server.bootstrap, topic_of(shape), count, size)
        settings = {"spark.jars": connector_jars(), "spark.driver.memory": "3g"}
        spark = session("bench", cores=options.cores, settings=settings)
        # The first round compiles classes and starts workers: it is not counted.
        rounds(Sides(spark, server, []), 1)
        bench = Sides(spark, server, [])
        rounds(bench, options.rounds)
        spark.stop()
    finally:
        server.stop()
    entries = {
        name: [statistics.median(column) for column in zip(*each, strict=True)]
        for name, each in bench.figures.items()
    }
    print(json.dumps(entries))


if __name__ == "__main__":
    main()

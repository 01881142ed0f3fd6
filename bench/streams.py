"""How fast topologies run on Spark: `python -m bench.streams [--records N] [--only NAME]`.

Each topology works off a topic of records of 100 bytes in four partitions, with a thousand and with a hundred thousand
keys, and writes what comes of every record into another topic. The first micro-batch starts workers and fills the
state: it is not counted. Told are records a second and CPU microseconds a record of Spark with its workers; another load
on the machine shows in the first, hardly in the second. The stage's own time, without Spark, is told by `--bare`.
"""

import argparse
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench import servers
from bench.spark_read import create, spark_cpu_seconds
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.streams import (
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from ottla.streams.spark import session
from ottla.streams.spark.compile import QuerySettings
from ottla.streams.spark.query import end_offsets, start
from ottla.wire.records.columnar_encoding import Rows

PARTITIONS = 4
_CHUNK = 20_000
_VALUE_BYTES = 100
_MICRO_BATCH = 200_000
_TEXT = Serdes.string()

KEYS = (1_000, 100_000)


class _Numbered(Processor[str, str, str, str]):
    """Counts the records of each key in a store."""

    stores = (Stores.key_value("numbers", _TEXT, Serdes.long()),)

    def init(self, context: object) -> None:
        """Open the store."""
        super().init(context)  # type: ignore[arg-type]
        self._numbers = self.context.store("numbers")

    def process(self, record: Record[str, str]) -> None:
        """Count one more."""
        number = (self._numbers.get(record.key) or 0) + 1
        self._numbers.put(record.key, number)
        self.context.forward(record.with_value(str(number)))


def stateless(builder: StreamsBuilder, source: str) -> None:
    """Filter and map."""
    values = builder.stream(source, key=_TEXT, value=_TEXT)
    values.filter(lambda value: value[0] != "b").map_values(str.upper).to("out")


def count(builder: StreamsBuilder, source: str) -> None:
    """Count by key."""
    counted = builder.stream(source, key=_TEXT, value=_TEXT).group_by_key().count()
    counted.to_stream().to("out", key=_TEXT, value=Serdes.long())


def windowed_count(builder: StreamsBuilder, source: str) -> None:
    """Count by key in windows of ten seconds."""
    windows = TimeWindows.of_size_and_grace("10 s", "5 s")
    grouped = builder.stream(source, key=_TEXT, value=_TEXT).group_by_key()
    counted = grouped.windowed_by(windows).count().to_stream()
    counted.map(lambda key, value: (key.key, value)).to("out", key=_TEXT, value=Serdes.long())


def table_join(builder: StreamsBuilder, source: str) -> None:
    """Join with a table that has every key."""
    table = builder.table(f"{source}-table", key=_TEXT, value=_TEXT)
    stream = builder.stream(source, key=_TEXT, value=_TEXT)
    stream.join(table, lambda value, other: value + other[:10]).to("out", key=_TEXT, value=_TEXT)


def processor(builder: StreamsBuilder, source: str) -> None:
    """Count by key in a processor's store."""
    builder.stream(source, key=_TEXT, value=_TEXT).process(_Numbered).to(
        "out", key=_TEXT, value=_TEXT
    )


TOPOLOGIES: dict[str, Callable[[StreamsBuilder, str], None]] = {
    each.__name__: each for each in (stateless, count, windowed_count, table_join, processor)
}


def build(name: str, source: str) -> Topology:
    """Return one of the topologies."""
    builder = StreamsBuilder()
    TOPOLOGIES[name](builder, source)
    return builder.build()


def fill(bootstrap: str, topic: str, keys: np.ndarray) -> None:
    """Create a topic and write a record for each key; each is in the partition of its key."""
    create(bootstrap, topic)
    now = time.time_ns() // 1_000_000
    chance = np.random.default_rng(1)
    noise = chance.integers(97, 122, _CHUNK + _VALUE_BYTES, np.uint8).tobytes()
    with Brokers(bootstrap) as brokers, ColumnSender(brokers) as sender:
        for number, chunk in enumerate(np.array_split(keys, max(1, len(keys) // _CHUNK))):
            times = now + number * 1000 + np.arange(len(chunk)) // 20
            for partition in range(PARTITIONS):
                # Whatever spreads keys will do, as long as all topics are written the same way.
                chosen = np.flatnonzero(chunk % PARTITIONS == partition)
                values = [noise[each : each + _VALUE_BYTES] for each in chosen]
                rows = Rows(
                    pa.array(values, pa.binary()),
                    pa.array([b"key%07d" % key for key in chunk[chosen]], pa.binary()),
                    None,
                    times[chosen],
                )
                sender.send(topic, partition, rows)
        sender.flush()


def measure(spark: SparkSession, bootstrap: str, name: str, source: str) -> tuple[float, float]:
    """Return records a second and CPU microseconds a record, without the first micro-batch."""
    # A micro-batch takes as much of each topic as it has to give.
    settings = QuerySettings("", "", max_records=_MICRO_BATCH)
    with tempfile.TemporaryDirectory() as folder:
        query = start(
            build(name, source),
            spark,
            application_id=f"{name}-{source}",
            bootstrap=bootstrap,
            checkpoint=folder,
            query_settings=settings,
        )
        with query:
            while query.queries[0].lastProgress is None:
                query.await_termination(1)
            before, begin = spark_cpu_seconds(), time.perf_counter()
            query.process_all_available(600)
            seconds, used = time.perf_counter() - begin, spark_cpu_seconds() - before
            first, last = query.queries[0].recentProgress[0], query.queries[0].lastProgress
    records = sum(end_offsets(last).values()) - sum(end_offsets(first).values())
    return records / seconds, used / records * 1e6


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=800_000)
    parser.add_argument("--only", choices=TOPOLOGIES)
    parser.add_argument("--cores", type=int, default=2)
    words = parser.parse_args()
    server = servers.start_ottla()
    try:
        chance = np.random.default_rng(1)
        for keys in KEYS:
            fill(server.bootstrap, f"keys-{keys}", chance.integers(0, keys, words.records))
            fill(server.bootstrap, f"keys-{keys}-table", np.arange(keys))
        create(server.bootstrap, "out")
        spark = session("bench", cores=words.cores)
        print(f"{words.records:,} records of {_VALUE_BYTES} bytes, {words.cores} cores")
        print(f"{'':30} {'records/s':>12} {'CPU us/record':>14}")
        for name in [words.only] if words.only else TOPOLOGIES:
            for keys in KEYS:
                rate, used = measure(spark, server.bootstrap, name, f"keys-{keys}")
                print(f"{name + f', {keys:,} keys':30} {rate:12,.0f} {used:14.1f}", flush=True)
        spark.stop()
    finally:
        server.stop()


if __name__ == "__main__":
    main()

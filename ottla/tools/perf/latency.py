"""`ottla perf latency TOPIC`: the latency from a producer to a consumer, one record at a time."""

from dataclasses import dataclass
from typing import Any

import click

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.raw.producer import RecordProducer
from ottla.operations.offsets.positions import Anchor, Position, resolve
from ottla.tools import options
from ottla.tools.measuring import plot, round_trips
from ottla.tools.output import Output
from ottla.tools.perf import client_options

_COLUMNS = ("topic", "records", "average_ms", "p50", "p99", "p99.9", "maximum_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """The command-line options for the records."""

    topic: str
    records: int
    size: int
    acks: str
    plot: str | None
    settings: dict[str, str]


@click.command("latency")
@click.argument("topic", shell_complete=options.complete_topic, callback=options.writable_topic)
@click.option("--records", type=click.IntRange(min=1), default=1000, show_default=True,
              metavar="N", help="The number of records.")  # fmt: skip
@client_options.size
@click.option("--acks", type=click.Choice(["1", "all"]), default="all", show_default=True,
              help="The acknowledgement to wait for.")  # fmt: skip
@client_options.plot
@client_options.settings
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Write one record at a time to TOPIC, and measure the milliseconds until it is read.

    No other producer may write to TOPIC meanwhile.

    \b
    ottla perf latency orders
    ottla perf latency orders --records 10000 --size 1000 --acks 1 --plot latency.svg
    """
    request = LatencyOptions(**option_values)
    plot.check_target(request.plot)
    partitions = topics.describe_topic(brokers, request.topic).partitions
    keys = [(request.topic, row.partition) for row in partitions]
    ends = resolve(brokers, keys, Position(Anchor.END))
    on_down = client_options.on_down(brokers.bootstrap)
    consuming = {**brokers.settings, **request.settings}
    producing = {"acks": request.acks, "linger.ms": "0", **consuming}
    with (
        RecordConsumer(brokers.bootstrap, settings=consuming, on_down=on_down) as consumer,
        RecordProducer(brokers.bootstrap, producing, on_down) as producer,
    ):
        values = round_trips.letters(request.size)
        latencies_ms = round_trips.measure_round_trips(
            (producer, consumer), ends, values, request.records
        )
    if request.plot:
        plot.write(request.plot, round_trips.curve(latencies_ms))
    facts = {
        "topic": request.topic,
        "records": len(latencies_ms),
        **round_trips.summary(latencies_ms),
        "maximum_ms": max(latencies_ms),
    }
    output.rows([client_options.rounded(facts)], _COLUMNS)

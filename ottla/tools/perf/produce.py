"""`ottla perf produce TOPIC`: the rate and the latency of a producer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.measuring import plot
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.producing import (
    ProducePlan,
    ProduceResults,
    random_values,
    send_records,
)
from ottla.tools.output import Output, note
from ottla.tools.perf import client_options

_COLUMNS = (
    "topic", "records", "records_per_second", "mb_per_second", "average_ms", "p50", "p95", "p99",
    "p99.9", "maximum_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """The command-line options for the records to write."""

    topic: str
    records: int
    size: int
    rate: float | None
    warmup: int
    acks: str
    plot: str | None
    settings: dict[str, str]


@click.command("produce")
@click.argument("topic", shell_complete=options.complete_topic, callback=options.writable_topic)
@click.option("--records", type=click.IntRange(min=1), default=100_000, show_default=True,
              metavar="N", help="The number of records to measure.")  # fmt: skip
@client_options.size
@client_options.rate
@click.option("--warmup", type=click.IntRange(min=0), default=0, metavar="N",
              help="Write this number of records first, without measuring them.")  # fmt: skip
@click.option("--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True,
              help="The acknowledgement to wait for.")  # fmt: skip
@client_options.plot
@client_options.settings
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Write records to TOPIC, and measure the rate and the latency of their acknowledgements.

    Latencies are in milliseconds, from the call of the producer to the acknowledgement. Values are
    random letters.

    \b
    ottla perf produce orders
    ottla perf produce orders --records 10000 --size 1000 --rate 500 --plot latency.svg
    ottla perf produce orders --acks 1 -X linger.ms=0 -X compression.type=zstd
    """
    request = ProduceOptions(**option_values)
    plot.check_target(request.plot)
    # Report a wrong address immediately; librdkafka would retry for half a minute.
    brokers.any_connection()
    plan = ProducePlan(
        topic=request.topic,
        records=request.warmup + request.records,
        rate=request.rate or 0.0,
        warmup=request.warmup,
    )
    results = ProduceResults(plan, _reporter())
    settings = {**brokers.settings, "linger.ms": "5", "acks": request.acks, **request.settings}
    on_down = client_options.on_down(brokers.bootstrap)
    with MeasuredProducer(brokers.bootstrap, settings, results.report, on_down) as producer:
        send_records(producer, plan, random_values(request.size), results)
    measured = results.steady or results.all
    if request.plot:
        plot.write(request.plot, measured.curve())
    row = {"topic": request.topic, **client_options.rounded(results.totals()[-1])}
    output.rows([row], _COLUMNS)


def _reporter() -> Callable[[OttlaError], None]:
    """Return a function that prints each reason for a failure once: many records may have it."""
    reported: set[str] = set()

    def report(error: OttlaError) -> None:
        if str(error) not in reported:
            reported.add(str(error))
            note(f"A record was not delivered: {error}")

    return report

"""`ottla perf verifiable-produce TOPIC`: write numbers, with an event for each acknowledgement."""

from dataclasses import dataclass
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.measuring.live import LiveLine
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.verifiable import NumbersPlan, NumbersRun, event_line
from ottla.tools.output import Output, note
from ottla.tools.perf import client_options
from ottla.tools.signals import PATIENCE_S, StopSignals

_COLUMNS = ("topic", "sent", "acknowledged", "records_per_second")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersOptions:
    """The command-line options for the records to write."""

    topic: str
    records: int | None
    rate: float | None
    acks: str
    prefix: int | None
    keys: int | None
    settings: dict[str, str]


@click.command("verifiable-produce")
@click.argument("topic", shell_complete=options.complete_topic, callback=options.writable_topic)
@click.option("--records", type=click.IntRange(min=1), metavar="N",
              help="The number of records (default: until Ctrl-C).")  # fmt: skip
@client_options.rate
@click.option("--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True,
              help="The acknowledgement to wait for.")  # fmt: skip
@click.option("--prefix", type=click.IntRange(min=0), metavar="N",
              help="Put this number and a dot before each value: it names the producer.")  # fmt: skip
@click.option("--keys", type=click.IntRange(min=1), metavar="N",
              help="Keys are 0 to N-1, again and again (default: no keys).")  # fmt: skip
@client_options.settings
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> int:
    """Write the numbers 0, 1, 2, … to TOPIC, and report each acknowledgement.

    With --output json, each record is one line: an event with its partition and its offset, as
    kafka-verifiable-producer prints it. The exit code is 1 if a record was not acknowledged.

    \b
    ottla perf verifiable-produce orders --records 1000
    ottla perf verifiable-produce orders --rate 50 --output json > sent.jsonl
    """
    request = NumbersOptions(**option_values)
    # Report a wrong address immediately; librdkafka would retry for half a minute.
    brokers.any_connection()
    plan = NumbersPlan(
        topic=request.topic,
        limit=-1 if request.records is None else request.records,
        rate=-1 if request.rate is None else request.rate,
        prefix=request.prefix,
        repeating_keys=request.keys,
    )
    live = LiveLine()

    def report(name: str, **fields: Any) -> None:
        if output.is_json:
            click.echo(event_line(name, **fields))
        elif name == "producer_send_error":
            live.clear()
            note(f"Value {fields['value']} was not delivered: {fields['message']}")
        else:
            live.show(numbers.acked)

    numbers = NumbersRun(plan, report)
    settings = {**brokers.settings, "acks": request.acks, "linger.ms": "0", **request.settings}
    on_down = client_options.on_down(brokers.bootstrap)
    error: OttlaError | None = None
    with (
        StopSignals(patience_s=PATIENCE_S) as stop,
        MeasuredProducer(brokers.bootstrap, settings, numbers.report, on_down) as producer,
    ):
        try:
            numbers.run(producer, stop)
        except OttlaError as failure:
            error = failure
    numbers.report_totals()
    live.clear()
    if not output.is_json:
        facts = {
            "topic": request.topic,
            "sent": numbers.sent,
            "acknowledged": numbers.acked,
            "records_per_second": numbers.records_per_second,
        }
        output.rows([client_options.rounded(facts)], _COLUMNS)
    if error is not None:
        raise error
    return 0 if numbers.acked == numbers.sent else 1

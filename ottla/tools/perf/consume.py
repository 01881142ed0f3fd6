"""`ottla perf consume TOPIC`: the rate of a consumer."""

import time
from dataclasses import dataclass
from typing import Any

import click

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.group.record_consumer import open_record_consumer
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.transport import TopicPartition
from ottla.operations.offsets.positions import BEGINNING, Anchor, Position, parse_position, resolve
from ottla.tools import options
from ottla.tools.measuring import plot
from ottla.tools.measuring.consuming import ConsumerRun
from ottla.tools.output import Output, note
from ottla.tools.perf import client_options

_COLUMNS = ("topic", "records", "seconds", "records_per_second", "mb", "mb_per_second", "rebalance_ms")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """The command-line options that select the records."""

    topic: str
    records: int | None
    offset: str | None
    group: str | None
    timeout: float
    plot: str | None
    settings: dict[str, str]


@click.command("consume")
@click.argument("topic", shell_complete=options.complete_topic)
@click.option("--records", type=click.IntRange(min=1), metavar="N",
              help="Stop after this number of records (default: at the present end of the topic).")  # fmt: skip
@click.option("-o", "--offset", metavar="POSITION",
              help="The start: beginning (default), end, 42, -10 (the last ten), @2026-02-14, @-1h.")  # fmt: skip
@click.option("-G", "--group", help="Read as a member of this group, from its committed offsets.")
@click.option("--timeout", type=options.FiniteRange(min=0, min_open=True), default=10.0,
              show_default=True, metavar="SECONDS", help="Stop after this time without a record.")  # fmt: skip
@client_options.plot
@client_options.settings
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> int:
    """Read records of TOPIC, and measure the rate.

    The exit code is 1 if the timeout has expired before all records were read.

    \b
    ottla perf consume orders
    ottla perf consume orders -o @-1h --plot rate.svg
    ottla perf consume orders --group billing --records 100000
    """
    request = ConsumeOptions(**option_values)
    start = _start(request)
    plot.check_target(request.plot)
    keys = [
        (request.topic, row.partition)
        for row in topics.describe_topic(brokers, request.topic).partitions
    ]
    starts, ends = _range(brokers, request, keys, start)
    run = ConsumerRun(request.records, request.timeout, exact=True)
    run.ends = ends
    with _consumer(brokers, request) as consumer:
        if request.group is None:
            consumer.assign(starts)
        else:
            consumer.subscribe([request.topic], run.on_assignment)
        run.run(consumer)
    if request.plot:
        plot.write(request.plot, run.curve())
    facts = {"topic": request.topic, "seconds": run.end - run.start, **run.facts()}
    output.rows([client_options.rounded(facts)], _COLUMNS)
    if run.is_complete:
        return 0
    note(f"No record has arrived for {request.timeout:g} s: raise --timeout, or lower --records.")
    return 1


def _start(request: ConsumeOptions) -> Position:
    if request.group is not None and request.offset is not None:
        raise click.UsageError(
            "A group reads from its committed offsets: move them with `ottla group reset`, "
            "or omit --group to read from any position."
        )
    if request.group is not None and request.records is None:
        raise click.UsageError("--group needs --records: the number of records to read.")
    if request.offset is None:
        return BEGINNING
    try:
        start = parse_position(request.offset, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if start.anchor is Anchor.STORED:
        raise click.UsageError("`stored` needs a group: name it with --group")
    return start


def _range(
    brokers: Brokers, request: ConsumeOptions, keys: list[TopicPartition], start: Position
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the start of each partition, and the end of those that have records to read."""
    if request.group is not None:
        return {}, {}
    starts = resolve(brokers, keys, start)
    if request.records is not None:
        return starts, {}
    ends = resolve(brokers, keys, Position(Anchor.END))
    return starts, {key: end for key, end in ends.items() if starts[key] < end}


def _consumer(brokers: Brokers, request: ConsumeOptions) -> RecordConsumer:
    settings = {**brokers.settings, "auto.offset.reset": "earliest", **request.settings}
    on_down = client_options.on_down(brokers.bootstrap)
    return open_record_consumer(
        brokers.bootstrap, group_id=request.group, settings=settings, on_down=on_down
    )

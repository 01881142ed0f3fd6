"""`ottla consume TOPIC`: write records as lines to standard output, with kcat's option letters."""

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.raw.goal import Goal
from ottla.client.transport import TopicPartition
from ottla.operations.offsets.positions import (
    BEGINNING,
    Anchor,
    Position,
    parse_range,
    resolve,
    resolve_end,
)
from ottla.tools import options
from ottla.tools.escapes import unescape
from ottla.tools.output import Output, ProgressBar
from ottla.tools.record.copying import Copier
from ottla.tools.record.formats import Format, compile_format, json_format, plain_format
from ottla.tools.signals import StopSignals
from ottla.tools.topic_partitions import check_partition

Range = tuple[Position, Position | None]

# The start of a group without committed offsets.
_RESETS = {Anchor.BEGINNING: "earliest", Anchor.STORED: "earliest", Anchor.END: "latest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """The command-line options that select the records and their format."""

    topics: tuple[str, ...]
    offsets: tuple[str, ...]
    partitions: tuple[int, ...]
    group: str | None
    count: int | None
    exit_at_end: bool
    quiet: bool
    format: str | None
    json: bool
    delimiter: str
    key_delimiter: str | None
    show_null: bool
    settings: dict[str, str]


@click.command("consume")
@click.argument("topics", nargs=-1, required=True, shell_complete=options.complete_topic)
@click.option(
    "-o",
    "--offset",
    "offsets",
    multiple=True,
    metavar="POSITION",
    help="Start position: beginning (default), end, stored (the committed offsets of -G), 42, "
    "-10 (the last ten), @2026-02-14, "
    "@-1h, @milliseconds; a second -o sets the end.",
)
@click.option("-p", "--partition", "partitions", type=options.number_of_partition, multiple=True,
              help="Read only this partition; may be repeated.")  # fmt: skip
@click.option("-G", "--group", help="Read as a member of this group, from its committed offsets.")
@click.option(
    "-c", "--count", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    "-e", "--exit", "exit_at_end", is_flag=True, help="Stop at the end of all partitions."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the records.")
@click.option(
    "-f",
    "--format",
    help="The format of a record: %t topic, %p partition, %o offset, %k key, %s value, %K %S their lengths, "
    "%T timestamp, %h headers, %%; \\n \\t \\xNN.",
)
@click.option(
    "-J", "--json", is_flag=True, help="Write one JSON object per line, as --output json does."
)
@click.option(
    "-D", "--delimiter", default="\\n", show_default=True, help="Delimiter after each record."
)
@click.option(
    "-K",
    "--key-delimiter",
    metavar="DELIMITER",
    help="Write the key and this delimiter before the value.",
)
@click.option("-Z", "--null", "show_null", is_flag=True, help="Write NULL for null.")
@click.option(
    "-X",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=options.parse_settings,
    help="An option of librdkafka, like fetch.max.bytes=1000; may be repeated.",
)
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Read records of TOPICS and write them to standard output.

    The command runs until Ctrl-C, unless -c, -e or a second -o ends it.

    \b
    ottla consume greetings
    ottla consume orders -o -10 -e -f '%t[%p] %o: %k %s\\n'
    ottla consume orders -o @-1h -J | jq .payload
    """
    request = ConsumeOptions(**option_values)
    try:
        write = _format(request, output)
        start, end = parse_range(request.offsets, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with StopSignals() as stop:
        if request.group is None:
            _read_partitions(brokers, request, write, (start or BEGINNING, end), stop)
        else:
            _read_as_member(brokers, request, write, (start or BEGINNING, end), stop)


def _read_partitions(
    brokers: Brokers, request: ConsumeOptions, write: Format, positions: Range, stop: StopSignals
) -> None:
    start, end = positions
    if start.anchor is Anchor.STORED:
        raise click.UsageError("`stored` needs a group: name it with --group")
    keys = _partitions(brokers, request)
    starts = resolve(brokers, keys, start)
    stops, until_ms = resolve_end(brokers, keys, end) if end is not None else (None, None)
    goal = Goal(count=request.count, at_end=request.exit_at_end, stops=stops, until_ms=until_ms)
    goal.assign(starts)
    with (
        RecordConsumer(brokers.bootstrap, settings=_settings(brokers, request)) as consumer,
        _progress(brokers, request, starts, stops) as progress,
    ):
        consumer.assign(starts)
        copier = Copier(consumer, goal, write, sys.stdout.buffer, stop=stop)
        copier.run(brokers, is_quiet=request.quiet, progress=progress)


def _read_as_member(
    brokers: Brokers, request: ConsumeOptions, write: Format, positions: Range, stop: StopSignals
) -> None:
    start, end = positions
    if start.anchor not in _RESETS or end is not None or request.partitions:
        raise click.UsageError(
            "A group reads from its committed offsets: move them with `ottla group reset`, "
            "or omit --group to read from any position."
        )
    assert request.group is not None
    # Check before joining: a group would wait without a message for a topic that does not exist.
    _partitions(brokers, request)
    goal = Goal(count=request.count, at_end=request.exit_at_end)
    settings = {"auto.offset.reset": _RESETS[start.anchor], **_settings(brokers, request)}
    with RecordConsumer(brokers.bootstrap, group_id=request.group, settings=settings) as consumer:
        consumer.subscribe(request.topics, lambda mine: goal.assign(dict.fromkeys(mine, -1)))
        copier = Copier(consumer, goal, write, sys.stdout.buffer, stores=True, stop=stop)
        copier.run(brokers, is_quiet=request.quiet, progress=ProgressBar("Reading", None))


def _partitions(brokers: Brokers, request: ConsumeOptions) -> list[TopicPartition]:
    keys: list[TopicPartition] = []
    for name in request.topics:
        topic = brokers.retry(partial(brokers.topic, name))
        known = {row.partition_index for row in topic.partitions}
        for number in request.partitions:
            check_partition(name, number, known)
        keys += [(name, number) for number in sorted(set(request.partitions) or known)]
    return keys


def _settings(brokers: Brokers, request: ConsumeOptions) -> dict[str, str]:
    # At the end of a partition, a fetch would wait half a second before it returns empty.
    wait = {"fetch.wait.max.ms": "10"} if request.exit_at_end else {}
    return {**brokers.settings, **wait, **request.settings}


def _progress(
    brokers: Brokers,
    request: ConsumeOptions,
    starts: dict[TopicPartition, int],
    stops: dict[TopicPartition, int] | None,
) -> ProgressBar:
    """Return a progress bar over the records up to the end; without a total if there is no end."""
    if request.quiet or sys.stdout.isatty():
        return ProgressBar("Reading", None, is_shown=False)
    if stops is None and request.exit_at_end:
        stops = resolve(brokers, list(starts), Position(Anchor.END))
    total = None if stops is None else sum(stops[key] - starts[key] for key in starts)
    if request.count is not None:
        total = request.count if total is None else min(total, request.count)
    return ProgressBar("Reading", total)


def _format(request: ConsumeOptions, output: Output) -> Format:
    null = b"NULL" if request.show_null else b""
    if request.format is not None:
        return compile_format(request.format, null=null)
    if request.json or output.is_json:
        return json_format
    key_delimiter = None if request.key_delimiter is None else unescape(request.key_delimiter)
    return plain_format(unescape(request.delimiter), key_delimiter, null=null)

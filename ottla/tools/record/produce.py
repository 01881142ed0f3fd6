"""`ottla produce TOPIC`: write lines of standard input or files as records, with kcat's letters."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.raw.producer import RecordProducer
from ottla.tools import options
from ottla.tools.escapes import unescape
from ottla.tools.output import Output, ProgressBar, count_text, note
from ottla.tools.record.lines import Splitter, iterate_messages, parse_header
from ottla.tools.signals import StopSignals
from ottla.tools.text_files import read_bytes
from ottla.tools.topic_partitions import check_partition

_STDIN = 0
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """The command-line options for the records to write."""

    files: tuple[str, ...]
    lines: bool
    delimiter: str
    key_delimiter: str | None
    key: str | None
    partition: int | None
    headers: tuple[str, ...]
    empty_is_null: bool
    codec: str
    count: int | None
    create_topics: str | None
    settings: dict[str, str]


@click.command("produce")
@click.argument("topic", shell_complete=options.complete_topic, callback=options.writable_topic)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option("-l", "--lines", is_flag=True, help="Split the files into records at the delimiter.")
@click.option(
    "-D",
    "--delimiter",
    default="\\n",
    show_default=True,
    help="Delimiter of records: \\n, \\0, \\x1e…",
)
@click.option(
    "-K",
    "--key-delimiter",
    metavar="DELIMITER",
    help="Delimiter after the key at a record's start.",
)
@click.option("-k", "--key", help="The key of records without one.")
@click.option(
    "-p", "--partition", type=options.number_of_partition, help="The partition to write to."
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header for every record; may be repeated.",
)
@click.option(
    "-Z", "--null", "empty_is_null", is_flag=True, help="Write empty keys and values as null."
)
@click.option(
    "-z",
    "--compression",
    "codec",
    type=click.Choice(_CODECS),
    default="none",
    show_default=True,
    help="The compression codec.",
)
@click.option(
    "-c", "--count", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    "--create-topics",
    type=click.Choice(["yes", "no"]),
    help="Let the brokers create the topic; default: the profile's, or yes.",
)
@click.option(
    "-X",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=options.parse_settings,
    help="An option of librdkafka, like linger.ms=0; may be repeated.",
)
@options.connected
def command(brokers: Brokers, output: Output, topic: str, **option_values: Any) -> None:
    """Write records to TOPIC: one per line of standard input, or of FILES with -l, or one per FILE.

    \b
    echo hello | ottla produce greetings
    ottla produce orders -K: -z zstd -l orders.txt
    """
    request = ProduceOptions(**option_values)
    try:
        headers = [parse_header(text) for text in request.headers]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-H") from error
    if request.key_delimiter == "":
        raise click.BadParameter("it must not be empty", param_hint="-K")
    # Report a wrong address immediately; librdkafka would retry for half a minute.
    brokers.any_connection()
    is_new = _is_new(brokers, topic, request)
    settings = {**brokers.settings, "compression.type": request.codec, **request.settings}
    # The first Ctrl-C ends the input: the lines read so far are written.
    with StopSignals() as stop, RecordProducer(brokers.bootstrap, settings) as producer:
        for key, value in _records(request, stop):
            producer.send(topic, value, key=key, partition=request.partition, headers=headers)
            if stop.requested:
                break
    count = producer.delivered
    if is_new and count:
        partitions = len(topics.describe_topic(brokers, topic).partitions)
        note(f"Created topic {topic} with {count_text(partitions, 'partition')}.")
    if output.is_json or sys.stderr.isatty():
        noun = "record" if count == 1 else "records"
        output.done(f"Wrote {count} {noun} to {topic}.", topic=topic, records=count)


def _is_new(brokers: Brokers, topic: str, request: ProduceOptions) -> bool:
    """Return True if the first record creates the topic; check the partition otherwise."""
    try:
        known = topics.describe_topic(brokers, topic).partitions
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # The error of the first record says more.
            return False
        choice = request.create_topics
        if choice == "no" or (choice is None and not options.profile_creates_topics()):
            raise
        return True
    # librdkafka would report the first record without naming the topic or its partitions.
    if request.partition is not None:
        check_partition(topic, request.partition, [row.partition for row in known])
    return False


def _records(
    request: ProduceOptions, stop: StopSignals
) -> Iterator[tuple[bytes | None, bytes | None]]:
    splitter = Splitter(
        key_delimiter=None if request.key_delimiter is None else unescape(request.key_delimiter),
        fixed_key=None if request.key is None else request.key.encode(),
        empty_is_null=request.empty_is_null,
    )
    for number, message in enumerate(_messages(request, stop), 1):
        yield splitter.split(message)
        if number == request.count:
            return


def _messages(request: ProduceOptions, stop: StopSignals) -> Iterator[bytes]:
    delimiter = unescape(request.delimiter)
    if not delimiter:
        raise click.BadParameter("it must not be empty", param_hint="-D")
    if not request.files:
        if sys.stdin.isatty():
            note("Each line becomes a record; Ctrl-D ends.")
        yield from iterate_messages(StandardInput(stop), delimiter)
    elif request.lines:
        yield from _lines(request.files, delimiter)
    else:
        for name in request.files:
            yield read_bytes(name)


class StandardInput:
    """Standard input, read as it arrives, until its end or Ctrl-C."""

    def __init__(self, stop: StopSignals) -> None:
        self._stop = stop

    def read1(self, size: int = -1, /) -> bytes:
        """Return the bytes typed or piped in since the last call."""
        return self._stop.read(_STDIN, size)


def _lines(files: Sequence[str], delimiter: bytes) -> Iterator[bytes]:
    total = sum(Path(name).stat().st_size for name in files)
    with ProgressBar("Writing", total, is_bytes=True) as progress:
        for name in files:
            with Path(name).open("rb") as stream:
                for message in iterate_messages(stream, delimiter):
                    yield message
                    progress.advance(len(message) + len(delimiter))

"""`ottla topic trim TOPIC --to POSITION`: delete the records before a position.

`--file FILE` has the offsets of partitions of several topics, as kafka-delete-records reads them.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import offsets, records, topics
from ottla.client.brokers import Brokers
from ottla.operations.json_documents import offsets_of
from ottla.operations.offsets.positions import Anchor, Position, parse_position, resolve
from ottla.operations.topics import new_starts, trim
from ottla.tools import options
from ottla.tools.output import Output, count_text, is_terminal, note
from ottla.tools.text_files import read_json
from ottla.tools.topic_partitions import Partition, check_partition, parse_topic_partitions

_EXAMPLE = 'JSON as in {"partitions": [{"topic": "a", "partition": 0, "offset": 5}]}'
_COLUMNS = ("topic", "partition", "start_offset", "new_start_offset", "deleted")


@click.command("trim")
@click.argument("name", required=False, shell_complete=options.complete_topic)
@click.option(
    "--to",
    "position",
    metavar="POSITION",
    help="The first record to keep: an offset, end, -10 (keep the last ten), @2026-02-14, @-1h.",
)
@click.option("-p", "--partition", "partitions", type=options.number_of_partition, multiple=True,
              help="Only this partition; may be repeated.")  # fmt: skip
@click.option("--file", "path", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="The offsets of partitions as JSON, as for kafka-delete-records; -1 is the end.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@options.yes
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str | None,
    path: str | None,
    dry_run: bool,
    yes: bool,
    **option_values: Any,
) -> None:
    """Delete the records of a topic before a position, in each partition.

    \b
    ottla topic trim orders --to @-7d
    ottla topic trim orders --to end --partition 3
    ottla topic trim --file offsets.json --dry-run
    """
    position, partitions = option_values["position"], option_values["partitions"]
    if path is not None:
        if name is not None or position is not None or partitions:
            raise click.UsageError("--file names the partitions and offsets: leave out the others.")
        targets = _of_file(brokers, path)
    elif name is None or position is None:
        raise click.UsageError("Name a topic and --to POSITION, or a file with --file FILE.")
    else:
        targets = _of_topic(brokers, name, _parsed(position), partitions)
    starts = offsets.list_offsets(brokers, dict.fromkeys(targets, offsets.EARLIEST))
    count = sum(max(0, target - starts[key].offset) for key, target in targets.items())
    listed = ", ".join(sorted({topic for topic, _ in targets}))
    if count and not (yes or dry_run) and is_terminal():
        click.confirm(
            f"Delete up to {count_text(count, 'record')} of {listed}?", abort=True, err=True
        )
    result: Mapping[Partition, int] = {
        key: max(target, starts[key].offset) for key, target in targets.items()
    }
    if not dry_run:
        present = {key: row.offset for key, row in starts.items()}
        result = new_starts(trim(brokers, targets, present))
    rows = [
        {
            "topic": key[0],
            "partition": key[1],
            "start_offset": starts[key].offset,
            "new_start_offset": result[key],
            "deleted": result[key] - starts[key].offset,
            "executed": not dry_run,
        }
        for key in targets
    ]
    output.rows(rows, _COLUMNS)
    if dry_run:
        note("Dry run, nothing was deleted.")


def _parsed(text: str) -> Position:
    try:
        position = parse_position(text, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if position.anchor is Anchor.STORED:
        raise click.UsageError("`stored` is a position of a group: name an offset, a time or `end`")
    return position


def _of_topic(
    brokers: Brokers, name: str, position: Position, partitions: Sequence[int]
) -> dict[Partition, int]:
    known = [row.partition for row in topics.describe_topic(brokers, name).partitions]
    for number in partitions:
        check_partition(name, number, known)
    keys = [(name, number) for number in sorted(set(partitions) or known)]
    return resolve(brokers, keys, position)


def _of_file(brokers: Brokers, path: str) -> dict[Partition, int]:
    """Return the offsets of a file, with the end offset in place of -1; UsageError if one is not
    possible.
    """
    try:
        requested = offsets_of(read_json(path))
    except ConfigError as error:
        raise ConfigError(f"{error}: {path} needs {_EXAMPLE}") from error
    if not requested:
        raise ConfigError(f"{path} names no partitions: it needs {_EXAMPLE}")
    by_topic: dict[str, list[str]] = defaultdict(list)
    for topic, partition in sorted(requested):
        by_topic[topic].append(str(partition))
    keys = parse_topic_partitions(
        brokers, [f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()]
    )
    ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
    targets = {}
    for key in keys:
        offset, end = requested[key], ends[key].offset
        if not records.TO_THE_END <= offset <= end:
            raise click.UsageError(
                f"{path}: {key[0]}-{key[1]} has no offset {offset}: use 0 to {end}, or -1 for the "
                "end."
            )
        targets[key] = end if offset == records.TO_THE_END else offset
    return targets

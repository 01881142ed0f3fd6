"""`ottla topic trim TOPIC --to POSITION`: delete the records before a position."""

import time

import click

from ottla.client.admin import offsets, records, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output, is_terminal, note
from ottla.tools.positions import Anchor, parse_position, resolve

_COLUMNS = ("topic", "partition", "start_offset", "new_start_offset", "deleted")


@click.command("trim")
@click.argument("name", shell_complete=options.complete_topic)
@click.option(
    "--to",
    "position",
    required=True,
    metavar="POSITION",
    help="The first record to keep: an offset, end, -10 (keep the last ten), @2026-02-14, @-1h.",
)
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True,
              help="Only this partition; may be repeated.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@options.yes
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str,
    position: str,
    partitions: tuple[int, ...],
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete the records of a topic before a position, in each partition.

    \b
    ottla topic trim orders --to @-7d
    ottla topic trim orders --to end --partition 3
    """
    try:
        parsed = parse_position(position, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if parsed.anchor is Anchor.STORED:
        raise click.UsageError("`stored` is a position of a group: name an offset, a time or `end`")
    known = [row.partition for row in topics.describe_topic(brokers, name).partitions]
    unknown = sorted(set(partitions) - set(known))
    if unknown:
        raise click.UsageError(
            f"Topic {name!r} has no partition {unknown[0]}, only 0 to {len(known) - 1}."
        )
    keys = [(name, number) for number in sorted(set(partitions) or known)]
    starts = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.EARLIEST))
    targets = resolve(brokers, keys, parsed)
    count = sum(targets[key] - starts[key].offset for key in keys)
    if count and not (yes or dry_run) and is_terminal():
        click.confirm(f"Delete up to {count} records of {name}?", abort=True, err=True)
    if not dry_run:
        targets = records.delete_records(brokers, targets)
    rows = [
        {
            "topic": name,
            "partition": key[1],
            "start_offset": starts[key].offset,
            "new_start_offset": targets[key],
            "deleted": targets[key] - starts[key].offset,
            "executed": not dry_run,
        }
        for key in keys
    ]
    output.rows(rows, _COLUMNS)
    if dry_run:
        note("Dry run, nothing was deleted.")

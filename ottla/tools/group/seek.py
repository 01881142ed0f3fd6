"""`ottla group seek GROUP`: move a group to a position, to another group's offsets, or to those of
a file.

Like `ottla group reset`, with offset expressions: the group must have no members, and nothing
changes without --execute.
"""

import time
from collections.abc import Sequence

import click

from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.client.resets import Move, Partition, Target, plan_moves
from ottla.tools import options
from ottla.tools.group.reset import refuse_while_active, show_moves
from ottla.tools.group.targets import bounds_of
from ottla.tools.moments import parse_moment
from ottla.tools.output import Output
from ottla.tools.positions import Anchor, Position, parse_position, resolve
from ottla.tools.text_files import is_number, read_text
from ottla.tools.topic_partitions import parse_topic_partitions

_TARGETS = ("--to", "--to-time", "--to-group", "--to-file")


@click.command("seek")
@click.argument("group", shell_complete=options.complete_group)
@click.option("--to", "position", metavar="POSITION",
              help="start, end, 42, -10 (the last ten), +5 (after the first five), @2026-02-14, @-1h.")  # fmt: skip
@click.option("--to-time", metavar="TIME", help="The first record at or after a time: 2026-02-14T12:00:00Z, -1h.")  # fmt: skip
@click.option("--to-group", metavar="GROUP", shell_complete=options.complete_group,
              help="The committed offsets of another group.")  # fmt: skip
@click.option("--to-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Lines TOPIC PARTITION OFFSET, or TOPIC,PARTITION,OFFSET.")  # fmt: skip
@click.option("--topic", "topic_partitions", multiple=True, metavar="TOPIC[:0,1]",
              help="Only this topic, or these partitions of it; default: all with committed offsets.")  # fmt: skip
@click.option("--execute", is_flag=True, help="Execute the plan (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    group: str,
    topic_partitions: tuple[str, ...],
    execute: bool,
    **option_values: str | None,
) -> None:
    """Move the committed offsets of a group to a position, or to those of another group or a file.

    \b
    ottla group seek billing --to @-1h --execute
    ottla group seek billing-v2 --to-group billing --execute
    """
    if sum(value is not None for value in option_values.values()) != 1:
        raise click.UsageError(f"Choose the target with exactly one of {', '.join(_TARGETS)}.")
    refuse_while_active(brokers, group)
    committed = offsets.committed_offsets(brokers, group)
    current = {key: row.offset for key, row in committed.items() if row.offset >= 0}
    chosen = parse_topic_partitions(brokers, topic_partitions) if topic_partitions else None
    if option_values["position"] is not None or option_values["to_time"] is not None:
        moves = _to_position(brokers, group, current, chosen, _position(option_values))
    else:
        if option_values["to_group"] is not None:
            targets_by_partition = _of_group(brokers, option_values["to_group"], group)
        else:
            targets_by_partition = _of_file(str(option_values["to_file"]))
        moves = _to_offsets(brokers, targets_by_partition, current, chosen)
    if execute:
        targets = {
            (move.topic, move.partition): offsets.CommittedOffset(move.target) for move in moves
        }
        offsets.commit_offsets(brokers, group, targets)
    show_moves(output, group, moves, execute=execute)


def _position(options: dict[str, str | None]) -> Position:
    now_ms = time.time_ns() // 1_000_000
    try:
        if options["to_time"] is not None:
            return Position(Anchor.TIME, parse_moment(options["to_time"], now_ms))
        position = parse_position(str(options["position"]), now_ms)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if position.anchor is Anchor.STORED:
        raise click.UsageError("`stored` is where the group is already: name another position")
    return position


def _to_position(
    brokers: Brokers,
    group: str,
    current: dict[Partition, int],
    chosen: Sequence[Partition] | None,
    position: Position,
) -> list[Move]:
    keys = sorted(chosen if chosen is not None else current)
    if not keys:
        raise click.UsageError(
            f"Group {group!r} has no committed offsets: name the topic with --topic TOPIC."
        )
    targets = resolve(brokers, keys, position)
    return [Move(*key, current.get(key), targets[key]) for key in keys]


def _to_offsets(
    brokers: Brokers,
    targets: dict[Partition, int],
    current: dict[Partition, int],
    chosen: Sequence[Partition] | None,
) -> list[Move]:
    keys = [key for key in targets if chosen is None or key in chosen]
    if not keys:
        raise click.UsageError(
            "There are no offsets for these partitions: name others with --topic."
        )
    return plan_moves(
        Target.FILE, 0, bounds=bounds_of(brokers, keys), current=current, at_time=targets
    )


def _of_group(brokers: Brokers, other: str, group: str) -> dict[Partition, int]:
    if other == group:
        raise click.UsageError("--to-group names the group itself: name another one")
    committed = {
        key: row.offset
        for key, row in offsets.committed_offsets(brokers, other).items()
        if row.offset >= 0
    }
    if not committed:
        raise click.UsageError(f"Group {other!r} has no committed offsets; `ottla group list` lists the groups.")  # fmt: skip
    return committed


def _of_file(name: str) -> dict[Partition, int]:
    targets: dict[Partition, int] = {}
    for number, line in enumerate(read_text(name).splitlines(), 1):
        parts = line.replace(",", " ").split()
        if not parts:
            continue
        if len(parts) != 3 or not (is_number(parts[1], 32) and is_number(parts[2], 64)):
            raise click.UsageError(
                f"{name}, line {number}: {line!r} is not of the form TOPIC PARTITION OFFSET."
            )
        targets[parts[0], int(parts[1])] = int(parts[2])
    if not targets:
        raise click.UsageError(f"{name} contains no line TOPIC PARTITION OFFSET.")
    return targets

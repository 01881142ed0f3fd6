"""`ottla group reset GROUP`: show how a group's offsets would move; --execute moves them.

Follows kafka-consumer-groups --reset-offsets: the group must have no members.
"""

from collections.abc import Sequence
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.client.resets import Move
from ottla.tools import options
from ottla.tools.group.targets import NAMES, as_typed, choose, planned, targeted, warnings
from ottla.tools.group.types import describe_group
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "current_offset", "new_offset")
# States of a group without members; a group that does not exist is Dead.
_IDLE = ("Empty", "Dead")


@click.command("reset")
@click.argument("group", shell_complete=options.complete_group)
@click.option(
    "--topic",
    "topic_partitions",
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="Only this topic, or these partitions of it; default: all with committed offsets.",
)
@targeted
@click.option("--execute", is_flag=True, help="Execute the reset (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    group: str,
    topic_partitions: tuple[str, ...],
    execute: bool,
    **option_values: Any,
) -> None:
    """Reset the committed offsets of a group, with the options of kafka-consumer-groups.

    `ottla group seek` also takes the offsets of another group or of a file.

    \b
    ottla group reset billing --to @-1h --execute
    ottla group reset billing --topic orders --shift-by -10 --execute
    """
    chosen = choose(option_values)
    if chosen is None:
        raise click.UsageError(f"Choose the target with exactly one of {as_typed(NAMES)}.")
    refuse_while_active(brokers, group)
    committed = offsets.committed_offsets(brokers, group)
    keys = (
        parse_topic_partitions(brokers, topic_partitions) if topic_partitions else list(committed)
    )
    if not keys:
        raise click.UsageError(
            f"Group {group!r} has no committed offsets: name the topic with --topic TOPIC."
        )
    try:
        current = {key: row.offset for key, row in committed.items() if row.offset >= 0}
        moves = planned(brokers, *chosen, keys, current)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if execute:
        offsets.commit_offsets(
            brokers,
            group,
            {(move.topic, move.partition): offsets.CommittedOffset(move.target) for move in moves},
        )
    show_moves(output, group, moves, execute=execute)


def show_moves(output: Output, group: str, moves: Sequence[Move], *, execute: bool) -> None:
    """Print the moves, and warn of offsets that a partition does not contain."""
    rows = [
        {
            "group": group,
            "topic": move.topic,
            "partition": move.partition,
            "current_offset": move.current,
            "new_offset": move.target,
            "executed": execute,
        }
        for move in moves
    ]
    output.rows(rows, _COLUMNS)
    for sentence in warnings(moves):
        note(sentence)
    if not execute:
        note("Dry run, nothing was changed: add --execute to move the offsets.")


def refuse_while_active(brokers: Brokers, group: str) -> None:
    """Raise ApiError NON_EMPTY_GROUP if the group has members."""
    try:
        state = describe_group(brokers, group).state
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        # Offsets may be committed for a group before its first consumer starts.
        return
    if state not in _IDLE:
        raise ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"Group {group!r} is active ({state}): stop its consumers first, then reset it.",
        )

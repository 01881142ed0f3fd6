"""`ottla group reset GROUP`: shows where a group's offsets would move; --execute moves them.

Follows kafka-consumer-groups --reset-offsets: only a group without members can be moved.
"""

import time
from collections.abc import Sequence
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import groups, offsets, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.group.plan import Bounds, Move, Partition, Target, plan_moves
from ottla.tools.moments import parse_duration, parse_moment
from ottla.tools.output import Output, note

_COLUMNS = ("topic", "partition", "current_offset", "new_offset")
# States of a group without members; a group that never was is dead.
_IDLE = ("Empty", "Dead")


@click.command("reset")
@click.argument("group", shell_complete=options.complete_group)
@click.option(
    "--topic",
    "places",
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="Only this topic, or these partitions of it; default: all that the group has committed.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record kept.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-offset", type=click.IntRange(min=0), help="To this offset.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after a time.")
@click.option("--by-duration", metavar="AGE", help="To the first record of the last 90s, 2h, P1D.")
@click.option("--shift-by", type=int, help="By so many records: forward, or back with a minus.")
@click.option("--execute", is_flag=True, help="Do it; without this it is only shown.")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    group: str,
    places: tuple[str, ...],
    execute: bool,
    **words: Any,
) -> None:
    """Move the committed offsets of a group."""
    target, amount = _choose(words)
    _refuse_while_active(brokers, group)
    committed = offsets.committed_offsets(brokers, group)
    keys = _partitions(brokers, places) if places else list(committed)
    if not keys:
        raise click.UsageError(f"Group {group!r} has committed nothing: say --topic TOPIC.")
    try:
        moves = _plan(brokers, target, amount, keys, committed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if execute:
        offsets.commit_offsets(
            brokers,
            group,
            {(move.topic, move.partition): offsets.CommittedOffset(move.target) for move in moves},
        )
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
    if not execute:
        note("Nothing is changed yet: add --execute to do it.")


def _choose(words: dict[str, Any]) -> tuple[Target, int]:
    """Return the one target that was asked for, with its offset, shift or moment in ms."""
    now_ms = time.time_ns() // 1_000_000
    given = [name for name, value in words.items() if value is not None and value is not False]
    if len(given) != 1:
        names = ", ".join("--" + name.replace("_", "-") for name in words)
        raise click.UsageError(f"Say where to, with exactly one of {names}.")
    (name,) = given
    value = words[name]
    try:
        match name:
            case "to_datetime":
                return Target.TIME, parse_moment(value, now_ms)
            case "by_duration":
                return Target.TIME, now_ms - parse_duration(value)
            case "to_offset":
                return Target.OFFSET, value
            case "shift_by":
                return Target.SHIFT, value
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return (Target.EARLIEST if name == "to_earliest" else Target.LATEST), 0


def _refuse_while_active(brokers: Brokers, group: str) -> None:
    try:
        state = groups.describe_group(brokers, group).state
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        # Offsets may be prepared for a group before its first consumer starts.
        return
    if state not in _IDLE:
        raise ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"Group {group!r} is active ({state}): stop its consumers first, then reset it.",
        )


def _partitions(brokers: Brokers, places: Sequence[str]) -> list[Partition]:
    keys: list[Partition] = []
    for place in places:
        name, _, numbers = place.partition(":")
        known = [row.partition for row in topics.describe_topic(brokers, name).partitions]
        if not numbers:
            keys += [(name, number) for number in known]
            continue
        try:
            chosen = [int(number) for number in numbers.split(",")]
        except ValueError as error:
            raise click.UsageError(f"{place!r}: write it like orders:0,1") from error
        keys += [(name, number) for number in chosen]
    return keys


def _plan(
    brokers: Brokers,
    target: Target,
    amount: int,
    keys: Sequence[Partition],
    committed: dict[Partition, offsets.CommittedOffset],
) -> list[Move]:
    starts = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.EARLIEST))
    ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
    return plan_moves(
        target,
        amount,
        bounds={key: Bounds(starts[key].offset, ends[key].offset) for key in keys},
        current={key: row.offset for key, row in committed.items() if row.offset >= 0},
        at_time=offsets.offsets_at(brokers, keys, amount) if target is Target.TIME else {},
    )

"""`ottla group reset GROUP`: show how a group's offsets would move; --execute moves them.

Follows kafka-consumer-groups --reset-offsets: the group must have no members. The target can also
be a position, or the offsets of another group.
"""

import time
from collections.abc import Mapping
from typing import Any

import click

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.operations.offsets.plans import (
    Key,
    OffsetPlan,
    ResetRequest,
    Strategy,
    current_offsets,
    notes_of,
)
from ottla.operations.offsets.resets import NothingSelected, plan_reset
from ottla.operations.offsets.resets import execute as execute_plan
from ottla.tools import options
from ottla.tools.group.targets import FROM_FILE, NAMES, as_typed, choose, read_offsets, targeted
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "current_offset", "new_offset")
_TO_GROUP = "to_group"


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
@click.option(
    "--to-group",
    metavar="GROUP",
    shell_complete=options.complete_group,
    help="Reset to the committed offsets of another group.",
)
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

    \b
    ottla group reset billing --to @-1h --execute
    ottla group reset billing --topic orders --shift-by -10 --execute
    ottla group reset billing-v2 --to-group billing --execute
    """
    chosen = choose(option_values, also=[_TO_GROUP])
    offsets = _offsets(brokers, group, option_values)
    if chosen is None and offsets is None:
        raise click.UsageError(
            f"Choose the target with exactly one of {as_typed([*NAMES, _TO_GROUP])}."
        )
    strategy, amount = chosen or (Strategy.FROM_FILE, None)
    keys = tuple(parse_topic_partitions(brokers, topic_partitions))
    if offsets is not None and topic_partitions:
        keys = tuple(key for key in keys if key in offsets)
        if not keys:
            raise click.UsageError(
                "There are no offsets for these partitions: name others with --topic."
            )
    request = ResetRequest(group, strategy, (), keys, amount, offsets or {})
    try:
        plan = plan_reset(brokers, request, time.time_ns() // 1_000_000)
    except NothingSelected as error:
        raise click.UsageError(
            f"Group {group!r} has no committed offsets: name the topic with --topic TOPIC."
        ) from error
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    if plan.obstacle:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, plan.obstacle)
    if execute:
        execute_plan(brokers, plan)
    _show(output, plan, execute=execute)


def _offsets(
    brokers: Brokers, group: str, option_values: Mapping[str, Any]
) -> dict[Key, int] | None:
    """Return the offsets of a file or of another group."""
    file, other = option_values[FROM_FILE], option_values[_TO_GROUP]
    if file is not None:
        return read_offsets(file)
    if other is None:
        return None
    if other == group:
        raise click.UsageError("--to-group names the group itself: name another one")
    offsets = current_offsets(brokers, other)
    if not offsets:
        raise click.UsageError(
            f"Group {other!r} has no committed offsets; `ottla group list` lists the groups."
        )
    return offsets


def _show(output: Output, plan: OffsetPlan, *, execute: bool) -> None:
    """Print the plan, and warn of offsets that a partition does not contain."""
    rows = [
        {
            "group": plan.group_id,
            "topic": row.topic,
            "partition": row.partition,
            "current_offset": row.before,
            "new_offset": row.after,
            "lag": row.lag_before,
            "new_lag": row.lag_after,
            "executed": execute,
        }
        for row in plan.differences
    ]
    output.rows(rows, _COLUMNS)
    for sentence in notes_of(plan.differences):
        note(sentence)
    if not execute:
        note("Dry run, nothing was changed: add --execute to move the offsets.")

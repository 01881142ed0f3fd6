"""`ottla group describe GROUP…`: committed offsets, end offsets, lag, and members."""

from collections import Counter
from typing import Any

import click

from ottla.base.lag.uncommitted import uncommitted_keys
from ottla.client.admin import groups, offsets
from ottla.client.admin.offsets import EARLIEST
from ottla.client.brokers import Brokers
from ottla.operations.offsets.ends import known_ends
from ottla.operations.offsets.groups import describe_group
from ottla.tools import options
from ottla.tools.output import Output, note

_OFFSET_COLUMNS = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
    "client_id",
)
_MEMBER_COLUMNS = ("group", "state", "consumer_id", "host", "client_id", "assignor", "partitions")


@click.command("describe")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_group)
@click.option("--members", is_flag=True, help="Show the members instead of the offsets.")
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], members: bool) -> None:
    """Show a group's offsets and lag, or its members."""
    described = [describe_group(brokers, name) for name in names]
    if members:
        rows = [row for group in described for row in _member_rows(group)]
        output.rows(rows, _MEMBER_COLUMNS, empty="The group has no members.")
        return
    rows = [row for group in described for row in offset_rows(brokers, group)]
    output.rows(rows, _OFFSET_COLUMNS, empty="The group has no committed offsets yet.")
    for name in dict.fromkeys(row["group"] for row in rows if row["metadata"] == offsets.PROGRESS):
        note(f"{name} is an application: `ottla streams describe {name}` shows its instances.")


def offset_rows(brokers: Brokers, group: groups.Group) -> list[dict[str, Any]]:
    """Return the partitions that a group has committed or is assigned, with lag and owner."""
    committed = offsets.committed_offsets(brokers, group.group_id)
    owners = {key: member for member in group.members for key in member.assignment}
    topics = {topic for topic, _ in (*committed, *owners)}
    leaders = brokers.retry(lambda: brokers.known_leaders(topics, skips_unknown=True))
    sizes = Counter(topic for topic, _ in leaders)
    missing = uncommitted_keys(
        [key for key, row in committed.items() if row.offset >= 0],
        owners,
        sizes,
        group.protocol_type,
    )
    keys = sorted({*committed, *owners, *missing})
    ends = known_ends(brokers, keys)
    starts = known_ends(brokers, missing, EARLIEST)
    rows = []
    for key in keys:
        # The coordinator reports -1 if no offset is committed.
        current = committed[key].offset if key in committed else -1
        end, owner = ends.get(key), owners.get(key)
        rows.append(
            {
                "group": group.group_id,
                "state": group.state,
                "topic": key[0],
                "partition": key[1],
                "current_offset": None if current < 0 else current,
                "log_end_offset": end,
                "lag": _lag(end, starts.get(key) if current < 0 else current),
                "consumer_id": owner.member_id if owner else None,
                "host": owner.host if owner else None,
                "client_id": owner.client_id if owner else None,
                "metadata": committed[key].metadata if key in committed else "",
            }
        )
    return rows


def _member_rows(group: groups.Group) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            "state": group.state,
            "consumer_id": member.member_id,
            "instance_id": member.instance_id,
            "host": member.host,
            "client_id": member.client_id,
            "assignor": group.assignor,
            "partitions": [f"{topic}-{partition}" for topic, partition in member.assignment],
        }
        for member in group.members
    ]


def _lag(end: int | None, position: int | None) -> int | None:
    return None if end is None or position is None else max(end - position, 0)

"""The output of `kafka-share-groups --describe`."""

from collections.abc import Sequence
from typing import Any

from ottla.client.admin.apache.share_groups import (
    ShareGroup,
    ShareMember,
    describe_share_group,
    subscribed_share_group_offsets,
)
from ottla.client.brokers import Brokers
from ottla_scripts.flags import Options
from ottla_scripts.groups import kinds, state_table
from ottla_scripts.groups.running import (
    coordinator_of,
    execution_exception,
    print_error,
    runtime_exception,
)
from ottla_scripts.groups.state_table import width
from ottla_scripts.java_order import name_order
from ottla_scripts.printing import as_json, err, left, out

_LAYOUT = state_table.Layout("  ", 15, "ASSIGNMENT-EPOCH", (12, 17))
KIND = kinds.Kind("share", ("Stable", "Empty", "Dead"), "is not a share group")
_NONE = "-"
Rows = list[dict[str, Any]]


def describe(brokers: Brokers, options: Options) -> None:
    """Print start offsets (by default), members or states of groups."""
    names = name_order(dict.fromkeys(kinds.selected(brokers, options, KIND)))
    with execution_exception():
        described = {name: describe_share_group(brokers, name) for name in names}
    show = _show_offsets
    if "members" in options:
        show = _show_members
    elif "state" in options:
        show = _show_state
    rows: Rows = []
    for name in sorted(described):
        rows += show(brokers, described[name], options)
    if options.is_json:
        as_json(rows)


def _print_table(head: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
    out()
    for row in (head, *rows):
        out(left(row, widths))


def _note_empty(group: ShareGroup) -> None:
    if group.state == "Dead":
        print_error(f"Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        err(f"\nShare group '{group.group_id}' has no active members.")


def _show_offsets(brokers: Brokers, group: ShareGroup, options: Options) -> Rows:
    with runtime_exception():
        offsets = subscribed_share_group_offsets(brokers, group.group_id)
    rows: Rows = [
        {
            "group": group.group_id,
            "topic": topic,
            "partition": partition,
            "leader_epoch": offset.leader_epoch if offset and offset.leader_epoch >= 0 else None,
            "start_offset": offset and offset.start_offset,
            "lag": offset.lag if offset and offset.lag >= 0 else None,
        }
        for (topic, partition), offset in sorted(offsets.items(), key=lambda item: item[0])
    ]
    if options.is_json:
        return rows
    if not rows:
        out(f"\nShare group '{group.group_id}' has no offset information.")
        return rows
    is_verbose = "verbose" in options
    names = ["group", "topic", "partition", *(["leader_epoch"] if is_verbose else []),
             "start_offset", "lag"]  # fmt: skip
    widths = [
        width([group.group_id]),
        width(row["topic"] for row in rows),
        10,
        *([13] if is_verbose else []),
        13,
        0,
    ]
    head = [name.upper().replace("_", "-") for name in names]
    cells = [[_NONE if row[name] is None else row[name] for name in names] for row in rows]
    _print_table(head, widths, cells)
    return rows


def _show_state(brokers: Brokers, group: ShareGroup, options: Options) -> Rows:
    coordinator = coordinator_of(brokers, group.group_id)
    if not options.is_json:
        _note_empty(group)
        table = state_table.table(group, coordinator, _LAYOUT, is_verbose="verbose" in options)
        _print_table(table.head, table.widths, [table.cells])
    return [state_table.row(group, coordinator[1])]


def _show_members(brokers: Brokers, group: ShareGroup, options: Options) -> Rows:
    members = sorted(group.members, key=lambda member: member.member_id)
    if not options.is_json:
        _note_empty(group)
        if members and group.state != "Dead":
            _print_members(group, members, is_verbose="verbose" in options)
    return [
        {
            "group": group.group_id,
            "member": member.member_id,
            "host": member.host,
            "client": member.client_id,
            "epoch": member.member_epoch,
            "assignment": member.assignment,
        }
        for member in members
    ]


def _print_members(group: ShareGroup, members: Sequence[ShareMember], *, is_verbose: bool) -> None:
    widths = [
        width([group.group_id]),
        width(member.member_id for member in members),
        width(f"/{member.host}" for member in members),
        width(member.client_id for member in members),
        12,
        *([13] if is_verbose else []),
        0,
    ]
    head = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
            *(["MEMBER-EPOCH"] if is_verbose else []), "ASSIGNMENT"]  # fmt: skip
    rows = [
        [
            group.group_id,
            member.member_id,
            f"/{member.host}",
            member.client_id,
            len(member.assignment),
            *([member.member_epoch] if is_verbose else []),
            _assignment(member),
        ]
        for member in members
    ]
    _print_table(head, widths, rows)


def _assignment(member: ShareMember) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in member.assignment:
        by_topic.setdefault(topic, []).append(str(partition))
    return ";".join(sorted(f"{topic}:{','.join(rows)}" for topic, rows in by_topic.items()))

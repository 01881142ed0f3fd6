"""The output of `kafka-streams-groups --describe`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.admin import offsets
from ottla.client.admin.apache.streams_groups import (
    StreamsGroup,
    StreamsMember,
    Task,
    describe_streams_group,
)
from ottla.client.brokers import Brokers
from ottla_scripts.flags import Options
from ottla_scripts.groups import kinds, state_table
from ottla_scripts.groups.resetting import TopicPartition, in_java_order
from ottla_scripts.groups.running import (
    coordinator_of,
    execution_exception,
    print_error,
    runtime_exception,
)
from ottla_scripts.groups.state_table import width
from ottla_scripts.printing import as_json, left, out

_LAYOUT = state_table.Layout(" ", 25, "TARGET-ASSIGNMENT-EPOCH", (15, 25))
KIND = kinds.Kind(
    "streams",
    ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead"),
    "does not exist or is not a streams group",
)
_NONE = "-"
Rows = list[dict[str, Any]]


def describe(brokers: Brokers, options: Options) -> None:
    """Print lag (by default), members or states of groups."""
    show = _show_lag
    if "members" in options:
        show = _show_members
    elif "state" in options:
        show = _show_state
    rows: Rows = []
    for name in kinds.selected(brokers, options, KIND):
        with execution_exception():
            group = describe_streams_group(brokers, name)
        rows += show(brokers, group, options)
    if options.is_json:
        as_json(rows)


def source_topics(group: StreamsGroup, *, has_repartition: bool = False) -> set[str]:
    """Return the topics that a topology reads, optionally with its repartition topics."""
    names: set[str] = set()
    for part in group.subtopologies:
        names.update(part.source_topics)
        if has_repartition:
            names.update(topic.name for topic in part.repartition_source_topics)
    return names


def committed_offsets(
    brokers: Brokers, name: str, *, has_repartition: bool = True
) -> dict[TopicPartition, offsets.CommittedOffset]:
    """Return the offsets that a group has committed in the topics that its topology reads."""
    with runtime_exception():
        group = describe_streams_group(brokers, name)
        committed = offsets.committed_offsets(brokers, name, require_stable=False)
    names = source_topics(group, has_repartition=has_repartition)
    return {key: row for key, row in committed.items() if key[0] in names}


def _print_table(head: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
    for row in (head, *rows):
        out(left(row, widths))


def _note_empty(group: StreamsGroup) -> None:
    if group.state == "Dead":
        print_error(f"Streams group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        print_error(f"Streams group '{group.group_id}' has no active members.")


def _show_state(brokers: Brokers, group: StreamsGroup, options: Options) -> Rows:
    coordinator = coordinator_of(brokers, group.group_id)
    if not options.is_json:
        _note_empty(group)
        table = state_table.table(group, coordinator, _LAYOUT, is_verbose="verbose" in options)
        _print_table(table.head, table.widths, [table.cells])
    return [state_table.row(group, coordinator[1])]


def _show_members(brokers: Brokers, group: StreamsGroup, options: Options) -> Rows:
    members = group.members
    is_shown = bool(members) and group.state != "Dead" and not options.is_json
    if is_shown:
        _note_empty(group)
        name = width([group.group_id])
        member_id = width([member.member_id for member in members])
        ends = [
            width([member.process_id for member in members]),
            width([member.client_id for member in members]),
            0,
        ]
        end = ["PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
        if "verbose" in options:
            # Nothing separates the topology's epoch from the member.
            head = ["GROUP", "TARGET-ASSIGNMENT-EPOCH", f"{'TOPOLOGY-EPOCH':<15}{'MEMBER':<{member_id}}",
                    "MEMBER-PROTOCOL", "MEMBER-EPOCH", *end]  # fmt: skip
            widths = [name, 25, 0, 15, 15, *ends]
            rows = [_verbose_cells(group, member, member_id) for member in members]
        else:
            head = ["GROUP", "MEMBER", *end]
            widths = [name, member_id, *ends]
            rows = [
                [group.group_id, member.member_id, *_end_cells(member, _current(member))]
                for member in members
            ]
        _print_table(head, widths, rows)
    return [
        {
            "group": group.group_id,
            "member": member.member_id,
            "epoch": member.member_epoch,
            "process": member.process_id,
            "client": member.client_id,
            "active": member.assignment.active,
            "standby": member.assignment.standby,
            "warmup": member.assignment.warmup,
        }
        for member in members
    ]


def _verbose_cells(group: StreamsGroup, member: StreamsMember, width: int) -> list[Any]:
    target = member.target_assignment
    tasks = (
        _current(member)
        + _tasks("TARGET-ACTIVE", target.active)
        + _tasks("TARGET-STANDBY", target.standby)
        + _tasks("TARGET-WARMUP", target.warmup)
    )
    return [
        group.group_id,
        group.assignment_epoch,
        f"{group.topology_epoch:<15}{member.member_id:<{width}}",
        "classic" if member.is_classic else "streams",
        member.member_epoch,
        *_end_cells(member, tasks),
    ]


def _end_cells(member: StreamsMember, tasks: str) -> tuple[str, str, str]:
    return member.process_id, member.client_id, tasks


def _current(member: StreamsMember) -> str:
    tasks = member.assignment
    return (
        _tasks("ACTIVE", tasks.active)
        + _tasks("STANDBY", tasks.standby)
        + _tasks("WARMUP", tasks.warmup)
    )


def _tasks(title: str, tasks: Sequence[Task]) -> str:
    if not tasks:
        return ""
    by_part: dict[str, list[str]] = {}
    for part, partition in tasks:
        by_part.setdefault(part, []).append(str(partition))
    return f"{title}: " + "".join(f"{part}:[{','.join(rows)}]; " for part, rows in by_part.items())


def _show_lag(brokers: Brokers, group: StreamsGroup, options: Options) -> Rows:
    rows = _lags(brokers, group)
    if options.is_json or not group.members or group.state == "Dead":
        return rows
    _note_empty(group)
    head = ["GROUP", "TOPIC", "PARTITION"]
    names = ["group", "topic", "partition"]
    widths = [width([group.group_id]), width([row["topic"] for row in rows]), 10]
    if "verbose" in options:
        head += ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"]
        names += ["current_offset", "leader_epoch", "log_end_offset", "lag"]
        widths += [15] * 4
    else:
        head.append("OFFSET-LAG")
        names.append("lag")
        widths.append(0)
    cells = [[_NONE if row[name] is None else row[name] for name in names] for row in rows]
    _print_table(head, widths, cells)
    return rows


def _lags(brokers: Brokers, group: StreamsGroup) -> Rows:
    keys = in_java_order(
        {key for member in group.members for key in group.source_partitions(member)}
    )
    with execution_exception():
        starts = _list(brokers, keys, offsets.EARLIEST)
        ends = _list(brokers, keys, offsets.LATEST)
    committed = committed_offsets(brokers, group.group_id)
    rows = []
    for key in keys:
        row = committed.get(key)
        rows.append(
            {
                "group": group.group_id,
                "topic": key[0],
                "partition": key[1],
                "current_offset": row and row.offset,
                "leader_epoch": row.leader_epoch if row and row.leader_epoch >= 0 else None,
                "log_end_offset": ends[key].offset,
                "lag": ends[key].offset - (row or starts[key]).offset,
            }
        )
    return rows


def _list(
    brokers: Brokers, keys: Sequence[TopicPartition], timestamp: int
) -> Mapping[TopicPartition, offsets.FoundOffset]:
    return offsets.list_offsets(brokers, dict.fromkeys(keys, timestamp)) if keys else {}

"""The output of `kafka-consumer-groups --describe`."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import groups, offsets
from ottla.client.brokers import Brokers
from ottla.operations.offsets.ends import known_ends
from ottla_scripts.flags import Options
from ottla_scripts.groups.running import (
    all_groups,
    coordinator_of,
    execution_exception,
    runtime_exception,
)
from ottla_scripts.printing import as_json, err, left, out

_NONE = "-"
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class _Row(NamedTuple):
    """The offsets of one partition."""

    group: str
    topic: str
    partition: int | None
    epoch: str
    offset: int | None
    end: int | None
    member: str
    host: str
    client: str

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.end is None or self.offset < 0:
            return None
        return self.end - self.offset


def describe(brokers: Brokers, options: Options) -> None:
    """Print offsets (by default), members or states of groups."""
    names = all_groups(brokers) if "all-groups" in options else sorted(set(options.all("group")))
    with execution_exception():
        described = [_find(brokers, name) for name in names]
    if "members" in options:
        for group in described:
            _print_members(group, options)
    elif "state" in options:
        for group in described:
            _print_state(brokers, group, options)
    else:
        with runtime_exception():
            rows = [(group, _rows(brokers, group)) for group in described]
        if options.is_json:
            as_json(
                [
                    {**row._asdict(), "lag": row.lag}
                    for _, offset_rows in rows
                    for row in offset_rows
                ]
            )
            return
        for group, offset_rows in rows:
            _print_offsets(group, offset_rows, is_verbose="verbose" in options)


def _find(brokers: Brokers, name: str) -> groups.Group:
    try:
        return groups.describe_group(brokers, name)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        raise ApiError(
            error.code,
            f"Group {name} not found.",
        ) from error


def _announce(group: groups.Group, count: int) -> bool:
    """Print a note if the group has no members or is rebalancing; return True if there are rows to
    show.
    """
    if group.state == "Empty":
        err(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in _REBALANCING:
        err(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    return count > 0


def _rows(brokers: Brokers, group: groups.Group) -> list[_Row]:
    committed = offsets.committed_offsets(brokers, group.group_id, require_stable=False)
    members = sorted(
        (member for member in group.members if member.assignment),
        key=lambda member: -len(member.assignment),
    )
    keys = {key for member in members for key in member.assignment} | set(committed)
    ends = known_ends(brokers, sorted(keys))

    def row(key: tuple[str, int], member: groups.Member | None) -> _Row:
        known = committed.get(key)
        epoch = _NONE if known is None or known.leader_epoch < 0 else str(known.leader_epoch)
        owner = (_NONE,) * 3
        if member is not None:
            owner = (member.member_id, f"/{member.host}", member.client_id)
        offset = None if known is None else known.offset
        return _Row(group.group_id, *key, epoch, offset, ends.get(key), *owner)

    rows = [
        row(key, member)
        for member in members
        for key in sorted(member.assignment, key=lambda key: key[1])
    ]
    owned = {key for member in members for key in member.assignment}
    return rows + [row(key, None) for key in sorted(set(committed) - owned)]


def _print_offsets(group: groups.Group, rows: Sequence[_Row], *, is_verbose: bool) -> None:
    if not _announce(group, len(rows)):
        return
    epoch = ["LEADER-EPOCH"] if is_verbose else []
    head = ["GROUP", "TOPIC", "PARTITION", *epoch, "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG",
            "CONSUMER-ID", "HOST", "CLIENT-ID"]  # fmt: skip
    widths = [
        max(15, *(len(row.group) for row in rows)),
        max(15, *(len(row.topic) for row in rows)),
        10,
        *([15] if is_verbose else []),
        15,
        15,
        15,
        max(15, *(len(row.member) for row in rows)),
        max(15, *(len(row.host) for row in rows)),
        0,
    ]
    out()
    out(left(head, widths))
    for row in rows:
        shown_epoch = [row.epoch] if is_verbose else []
        cells = [row.group, row.topic, row.partition, *shown_epoch, row.offset, row.end, row.lag,
                 row.member, row.host, row.client]  # fmt: skip
        out(left([_NONE if cell is None else cell for cell in cells], widths))


def _print_members(group: groups.Group, options: Options) -> None:
    if options.is_json:
        as_json([{**_member_row(member), "group": group.group_id} for member in group.members])
        return
    _announce(group, len(group.members))
    members = group.members
    is_verbose = "verbose" in options
    has_instances = any(member.instance_id for member in members)
    widths = [
        max([15, len(group.group_id) if members else 0]),
        max([15, *(len(member.member_id) for member in members)]),
        *(
            [max([17, *(len(member.instance_id or "") for member in members)])]
            if has_instances
            else []
        ),
        max([15, *(len(member.host) + 1 for member in members)]),
        max([15, *(len(member.client_id) for member in members)]),
        15,
    ]
    instance = ["GROUP-INSTANCE-ID"] if has_instances else []
    head = ["GROUP", "CONSUMER-ID", *instance, "HOST", "CLIENT-ID", "#PARTITIONS"]
    lines = [
        [
            group.group_id,
            member.member_id,
            *([member.instance_id or ""] if has_instances else []),
            f"/{member.host}",
            member.client_id,
            len(member.assignment),
        ]
        for member in members
    ]
    more = [15, 20, 15, 20] if is_verbose else []
    titles = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    out()
    out(
        left([*head, *(titles if is_verbose else [])], [*widths, *more])
        + ("" if is_verbose else " ")
    )
    for member, line in zip(members, lines, strict=True):
        extra = [_NONE, _assignment(member), _NONE, _NONE] if is_verbose else []
        out(left([*line, *extra], [*widths, *more]) + ("" if is_verbose else " "))


def _assignment(member: groups.Member) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in member.assignment:
        by_topic.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(rows)}" for topic, rows in by_topic.items()) or _NONE


def _member_row(member: groups.Member) -> dict[str, object]:
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "host": member.host,
        "client": member.client_id,
        "assignment": [list(key) for key in member.assignment],
    }


def _print_state(brokers: Brokers, group: groups.Group, options: Options) -> None:
    address, node_id = coordinator_of(brokers, group.group_id)
    if options.is_json:
        as_json(
            {
                "group": group.group_id,
                "coordinator": node_id,
                "assignor": group.assignor,
                "state": group.state,
                "members": len(group.members),
            }
        )
        return
    _announce(group, 1)
    coordinator = f"{address}  ({node_id})"
    is_verbose = "verbose" in options
    name_width = max(15, len(group.group_id))
    more = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if is_verbose else []
    widths = [name_width, max(25, len(coordinator)), 20, 20, *([15, 25] if is_verbose else []), 0]
    out()
    out(
        left(
            ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", *more, "#MEMBERS"], widths
        )
    )
    cells = [group.group_id, coordinator, group.assignor or _NONE, group.state]
    out(left([*cells, *([_NONE, _NONE] if is_verbose else []), len(group.members)], widths))

"""`--describe --state` of share and streams groups: its table and its JSON. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.client.admin.apache.share_groups import ShareGroup
from ottla.client.admin.apache.streams_groups import StreamsGroup

Group = ShareGroup | StreamsGroup


class Layout(NamedTuple):
    """The form of a tool's table: before the coordinator's id, of the state, and of the epochs."""

    gap: str
    state_width: int
    epoch_head: str
    epoch_widths: tuple[int, int]


class Table(NamedTuple):
    """The head of a table, the widths of its columns, and its only row."""

    head: list[str]
    widths: list[int]
    cells: list[Any]


def width(cells: Iterable[str]) -> int:
    """Return the width of a column with names."""
    return max([15, *map(len, cells)])


def table(group: Group, coordinator: tuple[str, int], layout: Layout, *, is_verbose: bool) -> Table:
    """Return the table of a group; `coordinator` is its address and its id."""
    address, node_id = coordinator
    text = f"{address}{layout.gap}({node_id})"
    head = ["GROUP", "COORDINATOR (ID)", "STATE"]
    cells: list[Any] = [group.group_id, text, group.state]
    widths = [width([group.group_id]), max(25, len(text)), layout.state_width]
    if is_verbose:
        head += ["GROUP-EPOCH", layout.epoch_head]
        cells += [group.group_epoch, group.assignment_epoch]
        widths += layout.epoch_widths
    return Table([*head, "#MEMBERS"], [*widths, 0], [*cells, len(group.members)])


def row(group: Group, node_id: int) -> dict[str, Any]:
    """Return the facts of a group as JSON has them."""
    return {
        "group": group.group_id,
        "coordinator": node_id,
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": len(group.members),
    }

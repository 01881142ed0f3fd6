"""Groups of one type: what `kafka-streams-groups` and `kafka-share-groups` list and delete alike."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla.operations.changes import change_each
from ottla.operations.offsets.groups import IDLE_STATES, delete_group
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Options
from ottla_scripts.groups.running import (
    execution_exception,
    print_error,
    runtime_exception,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.java_order import name_order
from ottla_scripts.printing import as_json, left, out


class Kind(NamedTuple):
    """A type of groups, and what the tool of this type prints in its own way."""

    name: str
    states: tuple[str, ...]
    # The end of the sentence "Group 'x' …", for a name that is not in the list.
    unknown: str


def find(brokers: Brokers, kind: Kind, states: Sequence[str] = ()) -> list[groups.GroupListing]:
    """Return the groups of this type, in the order of Apache Kafka's tool."""
    rows = {
        row.group_id: row
        for row in groups.list_groups(brokers, states=states, types=[kind.name])
        # Brokers before 3.8 cannot select a type.
        if row.type.lower() == kind.name
    }
    return [rows[name] for name in name_order(rows)]


def selected(brokers: Brokers, options: Options, kind: Kind) -> list[str]:
    """Return the groups of --group, or all of this type."""
    if "all-groups" not in options:
        return options.all("group")
    with runtime_exception(is_listing=True):
        return [row.group_id for row in find(brokers, kind)]


def list_groups(kind: Kind) -> Callable[[Brokers, Options], None]:
    """Return the action of --list."""

    def action(brokers: Brokers, options: Options) -> None:
        has_states = "state" in options
        states = _states(options["state"], kind)
        with (execution_exception if has_states else runtime_exception)(is_listing=True):
            rows = find(brokers, kind, states)
        if options.is_json:
            as_json([{"group": row.group_id, "state": row.state} for row in rows])
            return
        if not has_states:
            for row in rows:
                out(row.group_id)
            return
        widths = (max([15, *(len(row.group_id) for row in rows)]), 0)
        out(left(("GROUP", "STATE"), widths))
        for row in rows:
            out(left((row.group_id, row.state or "Unknown"), widths))

    return action


def _states(text: str | None, kind: Kind) -> list[str]:
    if not text:
        return []
    known = {name.lower(): name for name in kind.states}
    chosen = [part.strip().lower() for part in java_split(",", text)]
    if not all(name in known for name in chosen):
        raise UsageError(f"Invalid state list '{text}'. Valid states are: {', '.join(kind.states)}")
    return [known[name] for name in chosen]


class Deletion(NamedTuple):
    """The groups that were deleted, and why others were not."""

    deleted: list[str]
    failed: dict[str, str]


def deletable(brokers: Brokers, options: Options, kind: Kind) -> tuple[list[str], dict[str, str]]:
    """Return the groups that can be deleted, and the reason for others."""
    with runtime_exception(is_listing=True):
        states = {row.group_id: row.state for row in find(brokers, kind)}
    names = list(dict.fromkeys(states if "all-groups" in options else options.all("group")))
    failed: dict[str, str] = {}
    title = kind.name.capitalize()
    for name in names:
        if name not in states:
            failed[name] = f"java.lang.IllegalArgumentException: Group '{name}' {kind.unknown}."
        elif states[name] == "Dead":
            failed[name] = (
                f"java.lang.IllegalStateException: {title} group '{name}' group state is DEAD."
            )
        elif states[name] not in IDLE_STATES:
            failed[name] = (
                "org.apache.kafka.common.errors.GroupNotEmptyException: "
                f"{title} group '{name}' is not EMPTY."
            )
    return [name for name in names if name not in failed], failed


def delete(brokers: Brokers, names: Sequence[str], failed: dict[str, str]) -> Deletion:
    """Delete groups; `failed` are those that cannot be deleted."""
    done = change_each(names, lambda name: delete_group(brokers, name))
    failed = failed | {name: java_exception(error) for name, error in done.errors.items()}
    return Deletion(name_order(done.changes), {name: failed[name] for name in name_order(failed)})


def print_deletion(kind: str, deletion: Deletion, *, nothing: str = "", end: str = "") -> None:
    """Print which groups were deleted; `nothing` is the list if no group was deleted, `end` follows
    it.
    """
    listed = ", ".join(f"'{name}'" for name in deletion.deleted)
    if not deletion.failed:
        out(f"Deletion of requested {kind} groups ({listed or nothing}) was successful.")
        return
    print_error(f"Deletion of some {kind} groups failed:")
    for name, text in deletion.failed.items():
        out(f"* Group '{name}' could not be deleted due to: {text}")
    if listed:
        out(f"\nThese {kind} groups were deleted successfully: {listed}{end}")

"""`ottla streams describe APPLICATION…`: show an application's input offsets, lag and instances."""

from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred
from ottla.client.admin.groups import Group
from ottla.client.brokers import Brokers
from ottla.operations.offsets.moments import render_moment
from ottla.streams.application.listing import NOT_RUNNING, RUNNING, Instance, instances_of
from ottla.tools import options
from ottla.tools.group.describe import offset_rows
from ottla.tools.output import Output, note

_OFFSETS = ("application_id", "topic", "partition", "current_offset", "log_end_offset", "lag")
_TASKS = ("application_id", "task", "dropped_records")
_MEMBERS = (
    *("application_id", "instance", "role", "since", "host", "application_server"),
    *("active_tasks", "standby_tasks"),
)

# If an instance listens on all addresses, the request goes to its address as the broker sees it.
_ANY_HOST = ("0.0.0.0", "[::]")  # noqa: S104

_read_dropped = deferred("ottla.streams.application.metrics_server", "read_dropped")


@click.command("describe")
@click.argument("names", metavar="APPLICATION…", nargs=-1, required=True)
@click.option("--members", is_flag=True, help="Show the instances instead of the offsets.")
@click.option(
    "--tasks",
    is_flag=True,
    help="Show the records that each task dropped; the application needs metrics_listener.",
)
@options.connected
def command(
    brokers: Brokers, output: Output, names: tuple[str, ...], members: bool, tasks: bool
) -> None:
    """Show an application's offsets and lag, its instances, or the records that its tasks dropped."""
    if members and tasks:
        raise click.UsageError("--members and --tasks cannot be combined.")
    rows: list[dict[str, Any]] = []
    notes = []
    for name in names:
        instances = instances_of(brokers, name)
        offsets = offset_rows(brokers, Group(name, "", "", "", ()))
        if not instances and not offsets:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"No such application: {name!r}. `ottla streams list` lists the applications.",
            )
        state = RUNNING if instances else NOT_RUNNING
        dropped = _dropped(instances)
        notes.append(f"{name} is {state}: {_counted(instances)}{_said_of_dropped(dropped)}.")
        if tasks:
            rows += [
                {"application_id": name, "task": task, "dropped_records": count}
                for task, count in sorted((dropped or {}).items())
            ]
            continue
        if members:
            rows += [_member(name, instance) for instance in instances]
            continue
        rows += [
            {"application_id": name, "state": state, **{key: row[key] for key in _OFFSETS[1:]}}
            for row in offsets
        ]
    if tasks:
        output.rows(rows, _TASKS, empty="No metrics of dropped records are available.")
    elif members:
        output.rows(rows, _MEMBERS, empty="No instance runs.")
    else:
        output.rows(rows, _OFFSETS, empty="No records have been read yet.")
    for sentence in notes:
        note(sentence)


def _counted(instances: list[Instance]) -> str:
    if not instances:
        return "no instance is running; the next one resumes from these offsets"
    active = sum(instance.is_active for instance in instances)
    tasks = sum(len(instance.tasks) for instance in instances)
    if tasks:
        plural = "instance" if active == 1 else "instances"
        return f"{active} {plural}, {tasks} tasks"
    if not active:
        return f"electing the active instance ({len(instances)} running)"
    standby = len(instances) - active
    return "1 active instance" + (f", {standby} on standby" if standby else "")


def _dropped(instances: list[Instance]) -> dict[str, int] | None:
    """Return the dropped records of active instances by task; None if no metrics are available."""
    dropped: dict[str, int] | None = None
    for instance in instances:
        host, _, port = instance.candidate.metrics.rpartition(":")
        if not instance.is_active or not host:
            continue
        reached = instance.client_host if host in _ANY_HOST else host
        try:
            counts: dict[str, int] = _read_dropped(f"{reached}:{port}")
            known = dropped or {}
            dropped = known | {task: known.get(task, 0) + n for task, n in counts.items()}
        except (OSError, ValueError) as error:
            note(f"The metrics of {instance.candidate.metrics} cannot be read: {error}.")
    return dropped


def _said_of_dropped(dropped: dict[str, int] | None) -> str:
    return "" if dropped is None else f", {sum(dropped.values())} dropped records"


def _member(name: str, instance: Instance) -> dict[str, Any]:
    info = instance.candidate
    return {
        "application_id": name,
        "instance": info.instance,
        "role": "active" if instance.is_active else "standby",
        "since": render_moment(info.since_ms),
        "host": instance.client_host,
        "application_server": info.host,
        "active_tasks": " ".join(instance.tasks),
        "standby_tasks": " ".join(instance.standby_tasks),
    }

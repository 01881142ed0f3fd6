"""`ottla streams reset`: show how an application would be reset; --execute resets it.

Follows kafka-streams-application-reset: no instance may be running; internal topics are deleted,
and input topics are read from the position of the options. The checkpoint is removed, too, which
Kafka leaves to KafkaStreams#cleanUp: it holds both state and positions, and must match the new
positions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.loading import deferred
from ottla.client.admin.groups import Group
from ottla.client.brokers import Brokers
from ottla.operations.offsets.plans import OffsetDifference
from ottla.streams.application.reset import (
    CHECKPOINT,
    GROUP,
    Removal,
    execute_reset,
    plan_reset,
    positions_of,
    refuse_while_running,
    running,
)
from ottla.tools import options
from ottla.tools.group.targets import targeted
from ottla.tools.output import Output, note
from ottla.tools.streams.client_config import ClientConfig, read_client_config

# Imported on use: the help needs none of it.
_check_application_id = deferred("ottla.streams.settings.application", "check_application_id")
_checkpoint_of = deferred("ottla.streams.settings.application", "checkpoint_of")
_plan_positions = deferred("ottla.tools.streams.positions", "plan_positions")
_COLUMNS = ("kind", "name")
_POSITION = "position"
_POSITION_COLUMNS = ("kind", "name", "partition", "current_offset", "new_offset")


def _names(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Return the names in comma-separated lists."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _topics(name: str, help_text: str) -> Callable[[options.Function], options.Function]:
    return click.option(
        name,
        multiple=True,
        metavar="TOPIC,…",
        callback=_names,
        shell_complete=options.complete_topic,
        help=help_text,
    )


@click.command("reset")
@click.option("--application-id", required=True, metavar="ID", help="The application.")
@_topics(
    "--input-topics", "Reset these to the position of the options below; default: the beginning."
)
@targeted
@_topics("--intermediate-topics", "Reset these to their end.")
@_topics("--internal-topics", "Delete only these internal topics; default: all.")
@click.option("--state-dir", metavar="FOLDER", help="The application's state_dir, if it sets one.")
@click.option(
    "--force", is_flag=True, help="Remove members that have not left the group by themselves."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done (default).")
@click.option("--execute", is_flag=True, help="Execute the reset (default: dry run).")
@click.option(
    "--config-file",
    "--command-config",
    "config_file",
    metavar="FILE",
    type=options.properties_file,
    envvar="OTTLA_COMMAND_CONFIG",
    show_envvar=True,
    help="A properties file with client settings, as for Kafka's tools: bootstrap.servers, …",
)
@options.bootstrap
@options.explain
@options.formatted
def command(
    output: Output, bootstrap: str, config_file: str | None, explain: bool, **option_values: Any
) -> None:
    """Reset an application: remove its checkpoint, internal topics and groups, and set its input
    offsets.
    """
    _check_application_id(option_values["application_id"])
    if option_values["dry_run"] and option_values["execute"]:
        raise click.UsageError("--dry-run and --execute cannot be combined.")
    of_profile = "" if config_file else options.config_of_profile()
    path = config_file or of_profile
    config = read_client_config(path) if path else ClientConfig()
    if config_file and config.ignored:
        note(f"{config_file}: ignored settings: {', '.join(config.ignored)}.")
    source = click.get_current_context().get_parameter_source("bootstrap")
    if config_file and source is not ParameterSource.COMMANDLINE and config.bootstrap:
        bootstrap = config.bootstrap
    with (
        Brokers(
            bootstrap,
            timeout_s=config.timeout_s,
            client_id=config.client_id,
            security=config.security,
        ) as brokers,
        options.requests_of(brokers, is_explained=explain),
    ):
        _reset(brokers, output, option_values)


def _reset(brokers: Brokers, output: Output, option_values: dict[str, Any]) -> None:
    name = option_values["application_id"]
    checkpoint = _checkpoint_of(option_values["state_dir"], name)
    members = running(brokers, name)
    if not option_values["force"]:
        refuse_while_running(members, name)
    current = positions_of(brokers, name, checkpoint)
    moves, notes = _plan_positions(brokers, option_values, current)
    removals = plan_reset(brokers, name, checkpoint, option_values["internal_topics"])
    if option_values["execute"]:
        positions = {row.key: row.after for row in moves if row.after is not None}
        execute_reset(brokers, name, removals, positions, members)
    rows = _rows(option_values, removals, moves)
    columns = _POSITION_COLUMNS if moves else _COLUMNS
    output.rows(rows, columns, empty=f"Nothing to reset for {name}.")
    for sentence in (*notes, *_remarks(option_values, removals, members, checkpoint)):
        note(sentence)
    if rows:
        where = "at the offsets above" if moves else "from the beginning"
        done = f"Reset: the next start of {name} begins {where}."
        note(
            done
            if option_values["execute"]
            else "Dry run, nothing was changed: add --execute to reset."
        )


def _rows(
    option_values: dict[str, Any], removals: Sequence[Removal], moves: Sequence[OffsetDifference]
) -> list[dict[str, Any]]:
    name = option_values["application_id"]
    facts = {"application_id": name, "executed": option_values["execute"]}
    rows: list[dict[str, Any]] = [
        {**facts, "kind": removal.kind, "name": removal.name}
        for removal in removals
        # The group is written with its new offsets, which are listed below.
        if not (moves and removal == Removal(GROUP, name))
    ]
    rows += [
        {
            **facts,
            "kind": _POSITION,
            "name": move.topic,
            "partition": move.partition,
            "current_offset": move.before,
            "new_offset": move.after,
        }
        for move in moves
    ]
    return rows


def _remarks(
    option_values: dict[str, Any],
    removals: Sequence[Removal],
    members: Sequence[Group],
    checkpoint: str,
) -> list[str]:
    remarks = []
    if removals and all(removal.kind != CHECKPOINT for removal in removals):
        remarks.append(
            f"There is no checkpoint in {checkpoint}: its state and input positions are not reset. "
            "Give --state-dir if the application uses another folder."
        )
    for group in members:
        verb = "left" if option_values["execute"] else "would leave"
        remarks.append(
            f"Members that {verb} the group {group.group_id}: {len(group.members)}. An instance that still runs rejoins "
            "and writes its state again: make sure that all instances are stopped."
        )
    return remarks

"""`ottla cluster move`: move replicas between brokers (KIP-455), show moves, verify, cancel them.

Plans are files in the JSON of kafka-reassign-partitions. They can name log directories of replicas.

Not done: `--disallow-replication-factor-change` and `--preserve-throttles` of the script have no
counterpart here.
"""

from collections.abc import Mapping
from typing import Any

import click

from ottla.base.loading import deferred
from ottla.client.admin import replicas
from ottla.client.brokers import Brokers
from ottla.operations.moves.execution import MovePlan, start
from ottla.tools import options
from ottla.tools.broker_ids import parse_broker_ids
from ottla.tools.cluster.moves import plan_of, refuse_existing, save
from ottla.tools.output import Output, note

_cancel_moves = deferred("ottla.tools.cluster.progress", "cancel_moves")
_show_progress = deferred("ottla.tools.cluster.progress", "show_progress")
_COLUMNS = ("topic", "partition", "from", "to")
_STATUS_COLUMNS = ("topic", "partition", "replicas", "adding", "removing")
_KINDS = ("to", "over", "plan", "cancel", "verify")
_FILE = {"type": click.Path(dir_okay=False), "metavar": "FILE"}


@click.command("move")
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--to", callback=parse_broker_ids, metavar="ID,…", help="The brokers of the replicas; the first one is preferred as leader.")  # fmt: skip
@click.option("--over", callback=parse_broker_ids, metavar="ID,…", help="Spread the replicas over these brokers and their racks; each partition keeps its number of replicas.")  # fmt: skip
@click.option("--plan", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="The replicas of partitions as JSON, as for kafka-reassign-partitions.")  # fmt: skip
@click.option("--save", help="Write the plan to a new file.", **_FILE)  # type: ignore[arg-type]
@click.option("--save-current", help="Write the present replicas to a new file: a plan that reverts the moves.", **_FILE)  # type: ignore[arg-type]  # fmt: skip
@click.option("--throttle", type=click.IntRange(min=1), metavar="BYTES", help="Limit the traffic of the moves, in bytes per second.")  # fmt: skip
@click.option("--verify", is_flag=True, help="Show the progress; --execute removes the limits when it is complete.")  # fmt: skip
@click.option("--cancel", is_flag=True, help="Cancel the moves of these partitions.")
@click.option("--execute", is_flag=True, help="Execute the plan (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    topic_partitions: tuple[str, ...],
    execute: bool,
    **option_values: Any,
) -> int:
    """Move the replicas of topics or partitions to brokers; without arguments, show running moves.

    TOPIC:0,1 names the partitions 0 and 1.

    With several partitions the first broker of --to rotates, so that leaders are spread. The exit
    code of --verify is 1 until all moves are complete.

    \b
    ottla cluster move orders --to 2,3 --execute
    ottla cluster move orders payments --over 1,2,3,4 --save plan.json
    ottla cluster move --plan plan.json --throttle 50000000 --execute
    ottla cluster move --plan plan.json --verify --execute
    ottla cluster move orders:0,1 --cancel --execute
    """
    if not topic_partitions and option_values["plan"] is None:
        if execute or any(option_values.values()):
            raise click.UsageError("Name the topics or partitions, as in orders or orders:0,1.")
        _show(brokers, output)
        return 0
    _check(topic_partitions, option_values)
    plan = plan_of(brokers, topic_partitions, option_values)
    if option_values["verify"]:
        return int(_show_progress(brokers, output, plan, execute=execute))
    if option_values["cancel"]:
        _cancel_moves(brokers, output, plan, execute=execute)
        return 0
    _move(brokers, output, plan, option_values, execute=execute)
    return 0


def _check(topic_partitions: tuple[str, ...], option_values: Mapping[str, Any]) -> None:
    """Raise UsageError for options that contradict each other."""
    if topic_partitions and option_values["plan"] is not None:
        raise click.UsageError("--plan names the partitions: leave out the topics.")
    kinds = [name for name in _KINDS if option_values[name]]
    if kinds in (["plan", "cancel"], ["plan", "verify"]):
        kinds.remove("plan")
    if len(kinds) != 1:
        raise click.UsageError(
            "Give either --to ID,… or --cancel, or one of --over, --plan and --verify."
        )
    unused = [name for name in ("save", "save_current", "throttle") if option_values[name]]
    if unused and kinds[0] in ("cancel", "verify"):
        word = unused[0].replace("_", "-")
        raise click.UsageError(f"--{word} cannot be combined with --{kinds[0]}.")


def _show(brokers: Brokers, output: Output) -> None:
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
        }
        for (topic, partition), move in sorted(
            replicas.list_partition_reassignments(brokers).items()
        )
    ]
    output.rows(rows, _STATUS_COLUMNS, empty="No replicas are moving.")


def _move(
    brokers: Brokers,
    output: Output,
    plan: MovePlan,
    option_values: Mapping[str, Any],
    *,
    execute: bool,
) -> None:
    files = {option_values["save"]: plan.targets, option_values["save_current"]: plan.current}
    files.pop(None, None)
    if option_values["save"] and len(files) < 2 and option_values["save_current"]:
        raise click.UsageError("--save and --save-current need different files.")
    refuse_existing(files)
    for path, assignment in files.items():
        save(path, assignment, plan.directories if assignment is plan.targets else {})
    if execute:
        start(brokers, plan, option_values["throttle"])
    rows = [
        {
            "topic": key[0],
            "partition": key[1],
            "from": list(plan.current[key]),
            "to": list(target),
            "directories": [
                f"{replica.broker}:{path}" for replica, path in plan.directories_of(key).items()
            ],
            "executed": execute,
            "cancelled": False,
        }
        for key, target in plan.targets.items()
    ]
    columns = (*_COLUMNS, "directories") if plan.directories else _COLUMNS
    output.rows(rows, columns, empty="The replicas are there already.")
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")
    elif rows and option_values["throttle"]:
        note("Add --verify instead of --throttle to see the progress, and to remove the limits.")

"""`ottla cluster move --verify` and `--cancel`: moves under way, and their limits."""

from ottla.client.brokers import Brokers
from ottla.operations.moves.directories import Directories, sentence
from ottla.operations.moves.execution import (
    MovePlan,
    cancel,
    find_moves,
    progress_of,
    remove_limits,
)
from ottla.tools.output import Output, note

_COLUMNS = ("topic", "partition", "state", "replicas", "to")
_LIMITS_REMOVED = "Removed the limits of traffic, if there were any."


def show_progress(brokers: Brokers, output: Output, plan: MovePlan, *, execute: bool) -> int:
    """Print the state of each partition of a plan; return 1 unless all of them are complete.

    With `execute`, the limits of traffic are removed if nothing moves any more in the cluster.
    """
    progress = progress_of(brokers, plan)
    rows = [
        {
            "topic": key[0],
            "partition": key[1],
            "state": state,
            "replicas": list(replicas),
            "to": list(plan.targets[key]),
        }
        for key, (state, replicas) in progress.states.items()
    ]
    output.rows(rows, _COLUMNS)
    for replica, target in sorted(plan.directories.items()):
        note(sentence(replica, target, progress.directories.get(replica, Directories())))
    if progress.is_busy:
        note("Replicas are moving: limits of traffic remain.")
    elif execute:
        remove_limits(brokers, plan)
        note(_LIMITS_REMOVED)
    return 0 if all(row["state"] == "complete" for row in rows) else 1


def cancel_moves(brokers: Brokers, output: Output, plan: MovePlan, *, execute: bool) -> None:
    """Cancel the moves of a plan's partitions that are under way, and remove their limits."""
    cancellation = find_moves(brokers, plan)
    has_ended = execute and cancel(brokers, cancellation).is_idle
    rows = [
        {
            "topic": key[0],
            "partition": key[1],
            "from": list(cancellation.moves.get(key, ())),
            "to": [],
            "executed": execute,
            "cancelled": True,
        }
        for key in cancellation.partitions()
    ]
    output.rows(rows, ("topic", "partition", "from"), empty="These partitions are not moving.")
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")
    if has_ended:
        remove_limits(brokers, plan)
        note(_LIMITS_REMOVED)

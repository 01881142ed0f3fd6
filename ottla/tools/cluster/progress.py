"""`ottla cluster move --verify` and `--cancel`: moves under way, and their limits."""

from ottla.client.admin import replicas
from ottla.client.admin.moves import throttles
from ottla.client.brokers import Brokers
from ottla.tools.cluster.moves import Plan, move_back
from ottla.tools.output import Output, note
from ottla.tools.scripts.replicas import log_dir_moves
from ottla.tools.scripts.replicas.log_dir_moves import Directories, Replica
from ottla.tools.scripts.replicas.moving import limited, states
from ottla.tools.scripts.replicas.reassignment_plan import TopicPartition

_COLUMNS = ("topic", "partition", "state", "replicas", "to")


def show_progress(brokers: Brokers, output: Output, plan: Plan, *, execute: bool) -> int:
    """Print the state of each partition of a plan; return 1 unless all of them are complete.

    With `execute`, the limits of traffic are removed if nothing moves any more in the cluster.
    """
    moves = replicas.list_partition_reassignments(brokers)
    directories = _directories(brokers, plan)
    rows = []
    for key, present in states(brokers, plan.targets, moves).items():
        state = _state(plan, key, present, directories)
        shown = moves[key].replicas if present is None else present
        rows.append(
            {
                "topic": key[0],
                "partition": key[1],
                "state": state,
                "replicas": list(shown),
                "to": list(plan.targets[key]),
            }
        )
    output.rows(rows, _COLUMNS)
    for replica, target in sorted(plan.directories.items()):
        note(log_dir_moves.sentence(replica, target, directories.get(replica, Directories())))
    is_busy = bool(moves) or any(state.is_moving for state in directories.values())
    if is_busy:
        note("Replicas are moving: limits of traffic remain.")
    elif execute:
        _remove_limits(brokers, plan)
    return 0 if all(row["state"] == "complete" for row in rows) else 1


def cancel_moves(brokers: Brokers, output: Output, plan: Plan, *, execute: bool) -> None:
    """Cancel the moves of a plan's partitions that are under way, and remove their limits."""
    moves = replicas.list_partition_reassignments(brokers)
    keys = [key for key in plan.targets if key in moves]
    back = log_dir_moves.ways_back(plan.directories, _directories(brokers, plan))
    if execute and keys:
        replicas.alter_partition_reassignments(brokers, dict.fromkeys(keys))
    if execute:
        move_back(brokers, back)
    touched = dict.fromkeys([*keys, *((row.topic, row.partition) for row in back)])
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "from": list(moves[topic, partition].replicas) if (topic, partition) in moves else [],
            "to": [],
            "executed": execute,
            "cancelled": True,
        }
        for topic, partition in touched
    ]
    output.rows(rows, ("topic", "partition", "from"), empty="These partitions are not moving.")
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")
    if execute and rows and not replicas.list_partition_reassignments(brokers):
        _remove_limits(brokers, plan)


def _directories(brokers: Brokers, plan: Plan) -> dict[Replica, Directories]:
    live = {replica.broker for replica in plan.directories} & set(brokers.node_ids())
    return {
        replica: state
        for replica, state in log_dir_moves.find_directories(brokers, live).items()
        if replica in plan.directories
    }


def _state(
    plan: Plan,
    key: TopicPartition,
    present: tuple[int, ...] | None,
    directories: dict[Replica, Directories],
) -> str:
    mine = {
        replica: target
        for replica, target in plan.directories.items()
        if (replica.topic, replica.partition) == key
    }
    found = {replica: directories.get(replica, Directories()) for replica in mine}
    if present is None or any(state.is_moving for state in found.values()):
        return "moving"
    is_there = present == plan.targets[key] and all(
        found[replica].current == target for replica, target in mine.items()
    )
    return "complete" if is_there else "different"


def _remove_limits(brokers: Brokers, plan: Plan) -> None:
    _, live, names = limited(brokers, plan.targets)
    throttles.clear(brokers, live, names)
    note("Removed the limits of traffic, if there were any.")

"""The execution of a plan: start its moves, show their progress, cancel them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.base.errors import ApiError
from ottla.client.admin import replicas as admin
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change
from ottla.operations.moves import directories, throttles
from ottla.operations.moves.directories import Directories, Replica
from ottla.operations.moves.plans import Assignment, Targets, TopicPartition
from ottla.operations.moves.replicas import limited, states

# Until a new replica exists, so that it can be moved to a directory.
_DIRECTORIES_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The present and the future replicas of partitions, and the directories of some replicas."""

    current: Assignment
    targets: Assignment
    directories: Targets = field(default_factory=dict)

    def directories_of(self, key: TopicPartition) -> Targets:
        """Return the directories of a partition's replicas."""
        return {
            replica: path
            for replica, path in sorted(self.directories.items())
            if (replica.topic, replica.partition) == key
        }

    def with_directories(self) -> set[TopicPartition]:
        """Return the partitions with replicas whose directories are named."""
        return {(replica.topic, replica.partition) for replica in self.directories}

    def changes(self) -> "MovePlan":
        """Return the plan of the partitions whose replicas change or whose directories are named."""
        named = self.with_directories()
        changed = [
            key
            for key, replicas in self.targets.items()
            if replicas != self.current[key] or key in named
        ]
        return MovePlan(
            {key: self.current[key] for key in changed},
            {key: self.targets[key] for key in changed},
            self.directories,
        )


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """The state of each partition of a plan with its replicas, and the directories of the replicas
    that the plan moves between directories. A state is "moving", "complete" or "different".

    `is_busy` also if the cluster moves other partitions.
    """

    states: Mapping[TopicPartition, tuple[str, tuple[int, ...]]]
    directories: Mapping[Replica, Directories]
    is_busy: bool


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The moves of a plan that are under way: the replicas of partitions, and the directories to
    which replicas return.
    """

    moves: Assignment
    ways_back: Targets

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of both."""
        back = ((row.topic, row.partition) for row in self.ways_back)
        return list(dict.fromkeys([*self.moves, *back]))


class Reassigned(NamedTuple):
    """The change, and the errors of partitions that were refused."""

    change: Change
    errors: Mapping[TopicPartition, ApiError]


def reassign(
    brokers: Brokers,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    current: Mapping[TopicPartition, Sequence[int]],
    *,
    keeps_factor: bool = False,
    cluster: str = "",
) -> Reassigned:
    """Move partitions to these replicas, or cancel moves to None; return the errors.

    `current` are the present replicas, for the change. With `keeps_factor` the number of replicas
    must not change (KIP-860).
    """
    errors = admin.try_reassignments(brokers, targets, keeps_factor=keeps_factor)
    done = {key: replicas for key, replicas in targets.items() if key not in errors}
    moved = {key: replicas for key, replicas in done.items() if replicas is not None}
    change = Change(
        cluster,
        "partition.reassign" if moved else "partition.cancel-reassignment",
        f"{len(done)} partitions",
        before=_replicas({key: current[key] for key in done if key in current}),
        after=_replicas(moved),
    )
    return Reassigned(change, errors)


def start(
    brokers: Brokers, plan: MovePlan, bytes_per_second: int | None, *, cluster: str = ""
) -> Change:
    """Start the moves of a plan, with a limit of their traffic if it is given.

    ConfigError if the limit is no positive number.
    """
    limit = "none" if bytes_per_second is None else f"{bytes_per_second} bytes/s"
    change = Change(
        cluster,
        "partition.reassign",
        f"{len(plan.targets)} partitions",
        before=_replicas({key: plan.current[key] for key in plan.targets}),
        after=_replicas(plan.targets),
        notes=(f"throttle {limit}",),
    )
    if not plan.targets:
        return change
    in_place = plan.with_directories()
    moved = {
        key: replicas
        for key, replicas in plan.targets.items()
        if replicas != plan.current[key] or key not in in_place
    }
    if bytes_per_second is not None:
        throttles.check_rate(bytes_per_second)
        moves = admin.list_partition_reassignments(brokers)
        live = brokers.node_ids()
        throttles.throttle(brokers, moved, plan.current, moves, bytes_per_second, live=live)
        nodes = (replica.broker for replica in plan.directories)
        throttles.throttle_moves(brokers, nodes, bytes_per_second)
    if moved:
        admin.alter_partition_reassignments(brokers, moved)
    _move(brokers, plan.directories)
    return change


def _replicas(assignment: Mapping[TopicPartition, Sequence[int]]) -> dict[str, str]:
    """Return the replicas of partitions as texts, by the name of the partition."""
    return {
        f"{topic}-{number}": ",".join(map(str, replicas))
        for (topic, number), replicas in assignment.items()
    }


def progress_of(brokers: Brokers, plan: MovePlan) -> MoveProgress:
    """Return the progress of a plan."""
    moves = admin.list_partition_reassignments(brokers)
    found = _directories(brokers, plan)
    rows = {
        key: (
            _state(plan, key, present, found),
            moves[key].replicas if present is None else present,
        )
        for key, present in states(brokers, plan.targets, moves).items()
    }
    return MoveProgress(
        rows, found, bool(moves) or any(state.is_moving for state in found.values())
    )


def find_moves(brokers: Brokers, plan: MovePlan) -> Cancellation:
    """Return the moves of a plan that are under way."""
    moves = admin.list_partition_reassignments(brokers)
    return Cancellation(
        {key: moves[key].replicas for key in plan.targets if key in moves},
        directories.ways_back(plan.directories, _directories(brokers, plan)),
    )


class CancelledMoves(NamedTuple):
    """The change, and whether the cluster moves no other partition."""

    change: Change
    is_idle: bool


def cancel(brokers: Brokers, cancellation: Cancellation, *, cluster: str = "") -> CancelledMoves:
    """Cancel moves: the original replicas remain, and replicas return to their directories.

    ApiError NO_REASSIGNMENT_IN_PROGRESS if one of the partitions is not being moved.
    """
    if cancellation.moves:
        admin.alter_partition_reassignments(brokers, dict.fromkeys(cancellation.moves))
    _move(brokers, cancellation.ways_back)
    partitions = cancellation.partitions()
    change = Change(
        cluster,
        "partition.cancel-reassignment",
        f"{len(partitions)} partitions",
        before=_replicas(cancellation.moves),
    )
    is_idle = bool(partitions) and not admin.list_partition_reassignments(brokers)
    return CancelledMoves(change, is_idle)


def remove_limits(brokers: Brokers, plan: MovePlan) -> None:
    """Remove the limits of the brokers that run, and of the topics of a plan."""
    _, live, names = limited(brokers, plan.targets)
    throttles.clear(brokers, live, names)


def _move(brokers: Brokers, targets: Targets) -> None:
    if targets:
        directories.move(brokers, targets, _DIRECTORIES_TIMEOUT_MS, _ignore)


def _ignore(replica: Replica, directory: str) -> None:
    """Do nothing: a plan is reported when all of its moves have started."""


def _directories(brokers: Brokers, plan: MovePlan) -> dict[Replica, Directories]:
    live = {replica.broker for replica in plan.directories} & set(brokers.node_ids())
    return {
        replica: state
        for replica, state in directories.find_directories(brokers, live).items()
        if replica in plan.directories
    }


def _state(
    plan: MovePlan,
    key: TopicPartition,
    present: tuple[int, ...] | None,
    found: Mapping[Replica, Directories],
) -> str:
    targets = plan.directories_of(key)
    states_of_replicas = {replica: found.get(replica, Directories()) for replica in targets}
    if present is None or any(state.is_moving for state in states_of_replicas.values()):
        return "moving"
    is_there = present == plan.targets[key] and all(
        states_of_replicas[replica].current == target for replica, target in targets.items()
    )
    return "complete" if is_there else "different"

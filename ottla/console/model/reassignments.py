"""Reassignment of partitions: a plan with its bytes and balance, throttle, progress, cancel.

`operations/moves/goals.py` chooses the replicas; `plan_moves` shows the consequences.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import replicas as admin
from ottla.client.admin.replicas import LogDirectory
from ottla.console.model import throttles
from ottla.console.model.partitions import BrokerLoad, min_isr_of_all, skew
from ottla.operations.changes import Change
from ottla.operations.moves import execution, goals
from ottla.operations.moves.goals import Layout
from ottla.operations.moves.plans import Assignment
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import read_directories, replica_sizes
from ottla.operations.survey.metadata import Key as Key
from ottla.operations.survey.metadata import Metadata, read_metadata


class Goal(StrEnum):
    """The rule by which targets are chosen.

    BALANCE moves as few replicas as possible until brokers have equal numbers of replicas and
    leaders; SPREAD assigns all partitions again (kafka-reassign-partitions --generate);
    REPLICATION_FACTOR adds or removes replicas; EMPTY_BROKERS moves replicas away from the brokers
    that `brokers` does not contain; EXPLICIT takes `targets`.
    """

    BALANCE = "balance"
    SPREAD = "spread"
    REPLICATION_FACTOR = "replication-factor"
    EMPTY_BROKERS = "empty-brokers"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """The partitions to plan for (`topics` empty: all) and the brokers that may have replicas."""

    goal: Goal
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    replication_factor: int | None = None
    targets: Mapping[Key, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition whose replicas change; `bytes_to_copy` is its size times the new replicas."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    bytes_to_copy: int
    changes_leader: bool


@dataclass(frozen=True, slots=True)
class ReassignmentPlan:
    """A plan; nothing has moved. `bytes_by_broker` is (received, sent) by broker.

    Skews are the largest deviation from the mean number of replicas in percent.
    """

    moves: tuple[Move, ...]
    bytes_to_copy: int
    bytes_by_broker: Mapping[int, tuple[int, int]]
    balance_before: tuple[BrokerLoad, ...]
    balance_after: tuple[BrokerLoad, ...]
    skew_before: float
    skew_after: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningMove:
    """A reassignment in progress; `copied_bytes` is the size of the slowest new replica."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied_bytes: int
    total_bytes: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Throttle:
    """The limits that are set, in bytes per second by broker; empty without limits."""

    leader_bytes_per_s: Mapping[int, int]
    follower_bytes_per_s: Mapping[int, int]
    topics: tuple[str, ...]


def plan_moves(connection: ClusterConnection, request: ReassignmentRequest) -> ReassignmentPlan:
    """Return what a reassignment would move; changes nothing. ConfigError for impossible targets."""
    metadata = read_metadata(connection, is_fresh=True)
    directories = read_directories(connection, is_fresh=True)
    current = _current(metadata, request)
    layout = Layout(
        brokers=_brokers(metadata, request),
        racks={node.node_id: node.rack for node in metadata.nodes.values()},
        sizes=_sizes(directories),
    )
    targets = _targets(request, current, layout)
    leaders = metadata.leaders()
    moves = tuple(
        _move(key, current[key], targets[key], layout.sizes.get(key, 0))
        for key in sorted(targets)
        if targets[key] != current[key]
    )
    everything = _assignment(metadata)
    after = {**everything, **targets}
    nodes = sorted({*metadata.nodes, *(b for r in everything.values() for b in r)})
    before_loads, after_loads = (
        _loads(assignment, nodes, layout.sizes) for assignment in (everything, after)
    )
    counted = layout.brokers
    return ReassignmentPlan(
        moves=moves,
        bytes_to_copy=sum(move.bytes_to_copy for move in moves),
        bytes_by_broker=_traffic(moves, leaders, layout.sizes),
        balance_before=before_loads,
        balance_after=after_loads,
        skew_before=skew([load.replicas for load in before_loads if load.broker in counted]),
        skew_after=skew([load.replicas for load in after_loads if load.broker in counted]),
        warnings=_warnings(connection, moves, metadata, directories),
    )


def execute(
    connection: ClusterConnection,
    moves: Sequence[Move],
    *,
    throttle_bytes_per_s: int | None = None,
) -> Change:
    """Start moves, with a throttle on the brokers concerned if it is given.

    ApiError INVALID_REQUEST if the replicas differ from a move's `before`: make the plan again.
    """
    if not moves:
        raise ConfigError("the plan has no moves: add at least one")
    everything = _assignment(read_metadata(connection, is_fresh=True))
    for move in moves:
        replicas = everything.get((move.topic, move.partition))
        if replicas != move.before:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{move.topic}-{move.partition} has the replicas {_text(replicas or ()) or 'none'} "
                f"now, not {_text(move.before)} as in the plan. Make the plan again.",
            )
    plan = execution.MovePlan(
        {(move.topic, move.partition): move.before for move in moves},
        {(move.topic, move.partition): move.after for move in moves},
    )
    with connection.brokers() as brokers:
        change = execution.start(brokers, plan, throttle_bytes_per_s, cluster=connection.name)
    connection.forget()
    return change


def list_running(connection: ClusterConnection) -> list[RunningMove]:
    """Return the reassignments in progress with the bytes that have been copied."""
    with connection.brokers() as brokers:
        running = admin.list_partition_reassignments(brokers)
    if not running:
        return []
    directories = read_directories(connection, is_fresh=True)
    sizes = replica_sizes(directories)
    totals = _sizes(directories)
    rows = []
    for key, move in sorted(running.items()):
        total = totals.get(key, 0)
        copied = min((sizes.get((node, *key), 0) for node in move.adding), default=total)
        rows.append(
            RunningMove(
                topic=key[0],
                partition=key[1],
                replicas=move.replicas,
                adding=move.adding,
                removing=move.removing,
                copied_bytes=copied,
                total_bytes=total,
                fraction=min(1.0, copied / total) if total else 1.0,
            )
        )
    return rows


def cancel(connection: ClusterConnection, partitions: Sequence[Key] | None = None) -> Change:
    """Cancel reassignments (None: all): the original replicas remain.

    ApiError NO_REASSIGNMENT_IN_PROGRESS if one of the partitions is not being moved.
    """
    with connection.brokers() as brokers:
        running = admin.list_partition_reassignments(brokers)
        keys = list(running) if partitions is None else list(partitions)
        moves = {key: running[key].replicas if key in running else () for key in keys}
        cancellation = execution.Cancellation(moves, {})
        change = execution.cancel(brokers, cancellation, cluster=connection.name).change
    connection.forget()
    return change


def read_throttle(connection: ClusterConnection) -> Throttle:
    """Return the replication throttles of all brokers."""
    leader, follower, topics = throttles.read(connection)
    return Throttle(leader, follower, topics)


def change_throttle(connection: ClusterConnection, bytes_per_s: int) -> Change:
    """Change the limit of all brokers that have one; ConfigError if none has."""
    return throttles.change(connection, bytes_per_s)


def remove_throttle(connection: ClusterConnection) -> Change:
    """Remove the limits of all brokers and topics, as `--verify` does when moves are complete."""
    return throttles.remove(connection)


def _assignment(metadata: Metadata) -> Assignment:
    return {
        (topic.name, row.partition): row.replicas
        for topic in metadata.topics.values()
        for row in topic.partitions
    }


def _current(metadata: Metadata, request: ReassignmentRequest) -> Assignment:
    everything = _assignment(metadata)
    if request.goal is Goal.EXPLICIT:
        if missing := sorted(set(request.targets) - set(everything)):
            raise ConfigError(f"there is no partition {missing[0][0]}-{missing[0][1]}")
        return {key: everything[key] for key in request.targets}
    for name in request.topics:
        metadata.topic(name)
    selected = set(request.topics or metadata.topics)
    return {key: replicas for key, replicas in everything.items() if key[0] in selected}


def _brokers(metadata: Metadata, request: ReassignmentRequest) -> tuple[int, ...]:
    if down := sorted(set(request.brokers) - set(metadata.nodes)):
        raise ConfigError(f"broker {down[0]} is not running: choose running brokers")
    return tuple(sorted(request.brokers or metadata.nodes))


def _targets(request: ReassignmentRequest, current: Assignment, layout: Layout) -> Assignment:
    match request.goal:
        case Goal.BALANCE:
            return goals.balance(current, layout)
        case Goal.SPREAD:
            return goals.spread(current, layout)
        case Goal.EMPTY_BROKERS:
            return goals.empty_brokers(current, layout)
        case Goal.REPLICATION_FACTOR:
            if request.replication_factor is None:
                raise ConfigError(
                    "the goal replication-factor needs a value for replication_factor"
                )
            return goals.change_factor(current, layout, request.replication_factor)
        case Goal.EXPLICIT:
            for key, replicas in request.targets.items():
                _check_target(key, replicas, layout)
            return dict(request.targets)


def _check_target(key: Key, replicas: Sequence[int], layout: Layout) -> None:
    name = f"{key[0]}-{key[1]}"
    if not replicas or len(set(replicas)) != len(replicas):
        raise ConfigError(f"{name}: {_text(replicas)!r} must be one or more different brokers")
    if unknown := sorted(set(replicas) - set(layout.brokers)):
        raise ConfigError(f"{name}: broker {unknown[0]} is not running or not selected")


def _move(key: Key, before: tuple[int, ...], after: tuple[int, ...], size: int) -> Move:
    adding = tuple(broker for broker in after if broker not in before)
    return Move(
        topic=key[0],
        partition=key[1],
        before=before,
        after=after,
        adding=adding,
        removing=tuple(broker for broker in before if broker not in after),
        bytes_to_copy=size * len(adding),
        changes_leader=before[0] != after[0],
    )


def _sizes(directories: Mapping[int, list[LogDirectory]]) -> dict[Key, int]:
    """Return the size of the largest replica of each partition."""
    sizes: dict[Key, int] = {}
    for (_, topic, number), size in replica_sizes(directories).items():
        sizes[topic, number] = max(size, sizes.get((topic, number), 0))
    return sizes


def _loads(
    assignment: Assignment, brokers: Sequence[int], sizes: Mapping[Key, int]
) -> tuple[BrokerLoad, ...]:
    leaders = Counter(replicas[0] for replicas in assignment.values() if replicas)
    counts: Counter[int] = Counter()
    size_bytes: Counter[int] = Counter()
    for key, replicas in assignment.items():
        counts.update(replicas)
        for broker in replicas:
            size_bytes[broker] += sizes.get(key, 0)
    return tuple(
        BrokerLoad(broker, leaders[broker], counts[broker], size_bytes[broker])
        for broker in brokers
    )


def _traffic(
    moves: Sequence[Move], leaders: Mapping[Key, int], sizes: Mapping[Key, int]
) -> dict[int, tuple[int, int]]:
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for move in moves:
        key = move.topic, move.partition
        sent[leaders.get(key, move.before[0])] += move.bytes_to_copy
        for broker in move.adding:
            received[broker] += sizes.get(key, 0)
    return {broker: (received[broker], sent[broker]) for broker in sorted({*received, *sent})}


def _warnings(
    connection: ClusterConnection,
    moves: Sequence[Move],
    metadata: Metadata,
    directories: Mapping[int, list[LogDirectory]],
) -> tuple[str, ...]:
    warnings = []
    min_isr = min_isr_of_all(connection)
    for move in moves:
        name = f"{move.topic}-{move.partition}"
        if len(move.after) < min_isr.get(move.topic, 1):
            warnings.append(f"{name} would have fewer replicas than min.insync.replicas.")
        if metadata.topics[move.topic].partitions[move.partition].leader not in metadata.nodes:
            warnings.append(f"{name} is offline: nothing can be copied before it has a leader.")
    needed: Counter[int] = Counter()
    for move in moves:
        for broker in move.adding:
            needed[broker] += move.bytes_to_copy // len(move.adding)
    for broker, amount in sorted(needed.items()):
        free = [row.usable_bytes for row in directories.get(broker, []) if not row.error_code]
        if free and min(free) >= 0 and amount > sum(free):
            warnings.append(f"Broker {broker} has less free space than the {amount} bytes it gets.")
    return tuple(warnings)


def _text(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))

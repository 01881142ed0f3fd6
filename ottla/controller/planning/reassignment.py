"""Reassignment of partitions to other brokers: started, completed, cancelled. Pure.

A reassignment adds the new replicas to the old ones and removes the old ones once enough of the new
ones are in sync. Every step has its own leader epoch. Follows KIP-455, Kafka's
PartitionReassignmentReplicas and PartitionReassignmentRevert.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import (
    NO_EPOCH,
    NO_LEADER,
    ClusterImage,
    PartitionImage,
    ReplicaAssignment,
    TopicImage,
)
from ottla.cluster.zk.port import SetData
from ottla.cluster.znodes import TopicNode
from ottla.controller.planning import planner
from ottla.controller.planning.creation import Write, encode_topic
from ottla.controller.planning.requests import PartitionChangeResult, Reassignment

# Partitions per write: it must fit into one ZooKeeper packet and must not block the event loop for
# long.
MOVES_MAX = 500


class ReassignmentConditions(NamedTuple):
    """The conditions of a reassignment.

    `is_unclean` permits cancelling even if no remaining replica is in sync.
    """

    live: Collection[int]
    may_change_factor: bool = True
    is_unclean: bool = False


def plan_topic(
    topic: TopicImage | None, requests: Iterable[Reassignment], rules: ReassignmentConditions
) -> tuple[TopicImage | None, list[PartitionChangeResult]]:
    """Return the topic with the reassignments that could be started or cancelled, and each result."""
    results = []
    moved: dict[int, PartitionImage] = {}
    for request in requests:
        error = None
        try:
            former = moved.get(request.partition) or _existing(topic, request)
            moved[request.partition] = _planned(former, request, rules)
        except ApiError as refusal:
            # Without its traceback, which would keep every local variable of the call alive.
            error = refusal.with_traceback(None)
        results.append(PartitionChangeResult(request.topic, request.partition, error))
    if topic is not None:
        changed = [
            partition
            for number, partition in moved.items()
            if partition is not topic.partition(number)
        ]
        topic = topic.with_partitions(changed) if changed else topic
    return topic, results


def _existing(topic: TopicImage | None, request: Reassignment) -> PartitionImage:
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find a topic named {request.topic}.",
        )
    partition = topic.partition(request.partition)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {request.topic}:{request.partition}.",
        )
    return partition


def _planned(
    former: PartitionImage, request: Reassignment, rules: ReassignmentConditions
) -> PartitionImage:
    if request.replicas is None:
        return cancelled(former, rules)
    return begun(former, request.replicas, rules)


def begun(
    partition: PartitionImage, target: tuple[int, ...], rules: ReassignmentConditions
) -> PartitionImage:
    """Return the partition with its move to `target` begun; the same object if nothing changes.

    A new target replaces one that is in progress: replicas that only the former target added are
    dropped at once.
    """
    original = _assignment(partition).original_replicas
    _check(partition, target, original, rules)
    replicas = (*target, *(replica for replica in original if replica not in target))
    assignment = ReplicaAssignment(
        replicas,
        adding_replicas=tuple(replica for replica in target if replica not in original),
        removing_replicas=tuple(replica for replica in replicas if replica not in target),
    )
    if assignment == _assignment(partition):
        return partition
    if partition.leader_epoch == NO_EPOCH:
        # No replica ever held a record, so no data has to be copied.
        return replace(partition, replicas=target, adding_replicas=(), removing_replicas=())
    isr = _remaining_isr(partition, replicas, rules)
    after = completed(_assigned(partition, assignment, isr, rules), rules)
    # One step for every broker: the intermediate state was never published.
    return replace(after, leader_epoch=partition.leader_epoch + 1)


def completed(partition: PartitionImage, rules: ReassignmentConditions) -> PartitionImage:
    """Return the partition without its removing replicas, if the remaining ones are ready.

    All added replicas must be in sync. If the replication factor shrinks, all remaining replicas
    must be.
    """
    assignment = _assignment(partition)
    target = assignment.target_replicas
    adding, removing = assignment.adding_replicas, assignment.removing_replicas
    isr = tuple(member for member in partition.isr if member not in removing)
    needed = target if len(adding) < len(removing) else adding
    if not (adding or removing) or not isr or not set(needed) <= set(isr):
        return partition
    completed = _assigned(partition, ReplicaAssignment(target), isr, rules)
    return partition if completed.leader == NO_LEADER else completed


def cancelled(partition: PartitionImage, rules: ReassignmentConditions) -> PartitionImage:
    """Return the partition as it was before its reassignment."""
    if not partition.is_being_reassigned:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    original = _assignment(partition).original_replicas
    isr = _remaining_isr(partition, original, rules)
    return _assigned(partition, ReplicaAssignment(original), isr, rules)


def _assignment(partition: PartitionImage) -> ReplicaAssignment:
    return ReplicaAssignment(
        partition.replicas, partition.adding_replicas, partition.removing_replicas
    )


def _check(
    partition: PartitionImage,
    target: tuple[int, ...],
    original: tuple[int, ...],
    rules: ReassignmentConditions,
) -> None:
    if not target:
        raise _bad_assignment("includes an empty replica list")
    if len(set(target)) < len(target):
        twice = next(replica for replica in target if target.count(replica) > 1)
        raise _bad_assignment(f"includes the broker {twice} more than once")
    for broker_id in target:
        # A replica that is offline may remain one.
        if broker_id not in rules.live and broker_id not in original:
            raise _bad_assignment(f"includes broker {broker_id}, but no such broker is registered")
    factor = len(_assignment(partition).target_replicas)
    if not rules.may_change_factor and len(target) != factor:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(target)}",
        )


def _bad_assignment(reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {reason}."
    )


def _remaining_isr(
    partition: PartitionImage, replicas: Sequence[int], rules: ReassignmentConditions
) -> tuple[int, ...]:
    """Return the replicas in sync; an empty ISR is possible only if an unclean leader is allowed."""
    isr = tuple(member for member in partition.isr if member in replicas)
    if isr or not partition.isr:
        return isr
    if not rules.is_unclean:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"No replica of partition {partition.partition} that would remain is in sync: its "
            f"leader would have to be elected uncleanly.",
        )
    return (replicas[0],)


def _assigned(
    partition: PartitionImage,
    assignment: ReplicaAssignment,
    isr: tuple[int, ...],
    rules: ReassignmentConditions,
) -> PartitionImage:
    leader, live = partition.leader, partition.live(rules.live)
    if leader not in isr:
        able = (replica for replica in assignment.replicas if replica in isr and replica in live)
        leader = next(able, NO_LEADER)
    is_unclean = not set(isr) <= set(partition.isr)
    return replace(
        partition,
        replicas=assignment.replicas,
        adding_replicas=assignment.adding_replicas,
        removing_replicas=assignment.removing_replicas,
        isr=isr,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        offline_replicas=tuple(replica for replica in assignment.replicas if replica not in live),
        is_recovering=partition.is_recovering or is_unclean,
    )


def write_topic(before: TopicImage, after: TopicImage, controller_epoch: int) -> Write:
    """Return the write of a topic's assignment and of the partition states that change with it."""
    states = planner.topic_states(before, after, controller_epoch)
    assignment = SetData(TopicNode.path(after.name), encode_topic(after))
    return Write((assignment, *states.operations), states.topics, states.parents)


def dropped(
    before: ClusterImage, after: ClusterImage, topics: Iterable[str]
) -> dict[int, list[tuple[str, int]]]:
    """Return the partitions of these topics that each broker no longer holds."""
    removed: dict[int, list[tuple[str, int]]] = {}
    for name in topics:
        former, topic = before.topic(name), after.topic(name)
        if former is None or topic is None:
            continue
        for earlier, partition in zip(former.partitions, topic.partitions, strict=False):
            for broker_id in set(earlier.replicas) - set(partition.replicas):
                removed.setdefault(broker_id, []).append((name, partition.partition))
    return removed


def ongoing(
    image: ClusterImage, requested: Iterable[tuple[str, int]] | None
) -> dict[str, list[PartitionImage]]:
    """Return the partitions being reassigned, by topic; of `requested`, or of all topics."""
    moves: dict[str, list[PartitionImage]] = {}
    if requested is None:
        requested = [
            (name, partition.partition)
            for name, topic in image.topics.items()
            for partition in topic.partitions
        ]
    for name, number in requested:
        partition = image.partition(name, number)
        if partition is not None and partition.is_being_reassigned:
            moves.setdefault(name, []).append(partition)
    return moves

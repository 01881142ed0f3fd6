"""The two state machines of the controller as tables of legal transitions. Pure.

A partition's status is derived from the image, not stored; a replica's status is stored only while
its topic is being deleted. Planners call `move_*` before every change: an illegal transition is a
bug and raises AssertionError. Follows PartitionStateMachine and ReplicaStateMachine.
"""

from collections.abc import Container, Mapping
from enum import Enum

from ottla.cluster.image import NO_EPOCH, NO_LEADER, PartitionImage


class PartitionStatus(Enum):
    """The status of a partition; NEW has replicas but never had a leader."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"


class ReplicaStatus(Enum):
    """The status of a replica; the three DELETION values occur only while its topic is deleted."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETION_STARTED = "deletion started"
    DELETION_SUCCESSFUL = "deletion successful"
    DELETION_INELIGIBLE = "deletion ineligible"


# Each status, and the statuses it can be entered from.
PARTITION_MOVES: Mapping[PartitionStatus, frozenset[PartitionStatus]] = {
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset(
        {PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}
    ),
    PartitionStatus.OFFLINE: frozenset(
        {PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}
    ),
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.OFFLINE}),
}
REPLICA_MOVES: Mapping[ReplicaStatus, frozenset[ReplicaStatus]] = {
    ReplicaStatus.NEW: frozenset({ReplicaStatus.NON_EXISTENT}),
    ReplicaStatus.ONLINE: frozenset(
        {
            ReplicaStatus.NEW,
            ReplicaStatus.ONLINE,
            ReplicaStatus.OFFLINE,
            ReplicaStatus.DELETION_INELIGIBLE,
        }
    ),
    ReplicaStatus.OFFLINE: frozenset(
        {
            ReplicaStatus.NEW,
            ReplicaStatus.ONLINE,
            ReplicaStatus.OFFLINE,
            ReplicaStatus.DELETION_INELIGIBLE,
        }
    ),
    ReplicaStatus.DELETION_STARTED: frozenset({ReplicaStatus.OFFLINE}),
    ReplicaStatus.DELETION_SUCCESSFUL: frozenset({ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.DELETION_INELIGIBLE: frozenset(
        {ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED}
    ),
    ReplicaStatus.NON_EXISTENT: frozenset({ReplicaStatus.DELETION_SUCCESSFUL}),
}


def move_partition(current: PartitionStatus, target: PartitionStatus) -> PartitionStatus:
    """Return `target`; AssertionError if the transition from `current` is illegal."""
    assert current in PARTITION_MOVES[target], f"a partition went {current.value} -> {target.value}"
    return target


def move_replica(current: ReplicaStatus, target: ReplicaStatus) -> ReplicaStatus:
    """Return `target`; AssertionError if the transition from `current` is illegal."""
    assert current in REPLICA_MOVES[target], f"a replica went {current.value} -> {target.value}"
    return target


def partition_status(
    partition: PartitionImage | None, live_brokers: Container[int]
) -> PartitionStatus:
    """Return the status of a partition of an image."""
    if partition is None:
        return PartitionStatus.NON_EXISTENT
    if partition.leader_epoch == NO_EPOCH:
        return PartitionStatus.NEW
    is_led = partition.leader != NO_LEADER and partition.leader in live_brokers
    if is_led and partition.leader not in partition.failed_replicas:
        return PartitionStatus.ONLINE
    return PartitionStatus.OFFLINE

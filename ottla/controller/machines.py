"""The two state machines of the controller as tables: what may become what, and nothing else.

A partition's status follows from the image, so it is derived, not stored; a replica's status is
stored only while its topic is being deleted. The planner asks `move_*` before every change: an illegal
step is a bug and fails loudly. Pure. Follows PartitionStateMachine and ReplicaStateMachine.
"""

from collections.abc import Container, Mapping
from enum import Enum

from ottla.cluster.image import NO_EPOCH, NO_LEADER, PartitionImage


class PartitionStatus(Enum):
    """Life of a partition; NEW has replicas, but no leader was ever chosen."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"


class ReplicaStatus(Enum):
    """Life of a replica on one broker; the middle three only while its topic is deleted."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETION_STARTED = "deletion started"
    DELETION_SUCCESSFUL = "deletion successful"
    DELETION_INELIGIBLE = "deletion ineligible"


# Each status, and from which it may be entered.
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
    """Return `target`; AssertionError where a partition may not go there from `current`."""
    assert current in PARTITION_MOVES[target], f"a partition went {current.value} -> {target.value}"
    return target


def move_replica(current: ReplicaStatus, target: ReplicaStatus) -> ReplicaStatus:
    """Return `target`; AssertionError where a replica may not go there from `current`."""
    assert current in REPLICA_MOVES[target], f"a replica went {current.value} -> {target.value}"
    return target


def partition_status(
    partition: PartitionImage | None, live_brokers: Container[int]
) -> PartitionStatus:
    """Return the status that an image's partition is in."""
    if partition is None:
        return PartitionStatus.NON_EXISTENT
    if partition.leader_epoch == NO_EPOCH:
        return PartitionStatus.NEW
    is_led = partition.leader != NO_LEADER and partition.leader in live_brokers
    if is_led and partition.leader not in partition.failed_replicas:
        return PartitionStatus.ONLINE
    return PartitionStatus.OFFLINE

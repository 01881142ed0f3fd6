"""The state machines of partitions and replicas: which transitions are allowed."""

import itertools

import pytest

from ottla.cluster.image import NO_EPOCH, NO_LEADER, PartitionImage
from ottla.controller.planning import machines
from ottla.controller.planning.machines import PartitionStatus, ReplicaStatus


def partition(leader: int, leader_epoch: int = 3) -> PartitionImage:
    """Return a partition on brokers 1 and 2."""
    return PartitionImage(0, leader, leader_epoch, isr=(1, 2), replicas=(1, 2))


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (None, PartitionStatus.NON_EXISTENT),
        (partition(NO_LEADER, NO_EPOCH), PartitionStatus.NEW),
        (partition(1), PartitionStatus.ONLINE),
        (partition(2), PartitionStatus.OFFLINE),
        (partition(NO_LEADER), PartitionStatus.OFFLINE),
    ],
)
def test_a_partitions_status_follows_from_the_image(
    found: PartitionImage | None, status: PartitionStatus
) -> None:
    """If only broker 1 is alive, leader and leader epoch determine the status."""
    assert machines.partition_status(found, {1}) is status


def test_a_partition_makes_only_listed_transitions() -> None:
    """A transition that the table does not list is an AssertionError."""
    allowed = {
        (current, target)
        for target, sources in machines.PARTITION_MOVES.items()
        for current in sources
    }
    assert len(allowed) == 8
    for current, target in itertools.product(PartitionStatus, PartitionStatus):
        if (current, target) in allowed:
            assert machines.move_partition(current, target) is target
        else:
            with pytest.raises(AssertionError, match="a partition went"):
                machines.move_partition(current, target)


def test_a_replica_makes_only_listed_transitions() -> None:
    """A transition that the table does not list is an AssertionError."""
    allowed = {
        (current, target)
        for target, sources in machines.REPLICA_MOVES.items()
        for current in sources
    }
    for current, target in itertools.product(ReplicaStatus, ReplicaStatus):
        if (current, target) in allowed:
            assert machines.move_replica(current, target) is target
        else:
            with pytest.raises(AssertionError, match="a replica went"):
                machines.move_replica(current, target)


def test_a_replica_is_non_existent_only_after_a_successful_deletion() -> None:
    """Only a successful deletion leads to NON_EXISTENT, and only NON_EXISTENT leads to NEW."""
    assert machines.REPLICA_MOVES[ReplicaStatus.NON_EXISTENT] == {ReplicaStatus.DELETION_SUCCESSFUL}
    assert machines.REPLICA_MOVES[ReplicaStatus.NEW] == {ReplicaStatus.NON_EXISTENT}

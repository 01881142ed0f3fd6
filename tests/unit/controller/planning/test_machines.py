"""The two tables: what a partition and a replica may become."""

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
    """With broker 1 alone alive, leader and epoch say what a partition is."""
    assert machines.partition_status(found, {1}) is status


def test_a_partition_moves_only_along_the_table() -> None:
    """Every move that the table does not list is a broken invariant."""
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


def test_a_replica_moves_only_along_the_table() -> None:
    """Every move that the table does not list is a broken invariant."""
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


def test_what_is_deleted_can_be_made_anew_and_nothing_else_leaves_deletion_behind() -> None:
    """Only a successful deletion leads to non-existence, and only that to a new replica."""
    assert machines.REPLICA_MOVES[ReplicaStatus.NON_EXISTENT] == {ReplicaStatus.DELETION_SUCCESSFUL}
    assert machines.REPLICA_MOVES[ReplicaStatus.NEW] == {ReplicaStatus.NON_EXISTENT}

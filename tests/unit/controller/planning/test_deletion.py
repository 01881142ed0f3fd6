"""The deletion of a topic as a value: which replicas to delete next, and when it is complete."""

from ottla.cluster.image import PartitionImage, TopicImage
from ottla.controller.planning import deletion
from ottla.controller.planning.machines import ReplicaStatus

TOPIC = TopicImage(
    "t",
    b"i" * 16,
    (
        PartitionImage(0, 1, 0, isr=(1, 2), replicas=(1, 2)),
        PartitionImage(1, 2, 0, isr=(2, 1), replicas=(2, 1)),
    ),
)


def test_every_live_replica_is_deleted_once() -> None:
    """A replica whose deletion has begun is not requested again."""
    begun, orders = deletion.start(deletion.begin(TOPIC), {1, 2})
    assert orders == {1: [("t", 0), ("t", 1)], 2: [("t", 0), ("t", 1)]}
    assert deletion.start(begun, {1, 2})[1] == {}
    assert not begun.is_left_to({1, 2})


def test_it_is_complete_when_every_replica_is_deleted() -> None:
    """The response of the last broker completes the deletion."""
    begun, _ = deletion.start(deletion.begin(TOPIC), {1, 2})
    half = deletion.answered(begun, 1, failed=())
    assert not half.is_left_to({1, 2})
    assert deletion.answered(half, 2, failed=()).is_left_to({1, 2})


def test_a_replica_that_cannot_be_deleted_waits_for_its_broker_to_return() -> None:
    """A replica that fails to delete is retried when its broker returns."""
    begun, _ = deletion.start(deletion.begin(TOPIC), {1, 2})
    failed = deletion.answered(deletion.answered(begun, 2, failed=()), 1, failed={1})
    assert failed.replicas[1, 1] is ReplicaStatus.DELETION_INELIGIBLE
    again, orders = deletion.start(deletion.broker_returned(failed, 1), {1, 2})
    assert orders == {1: [("t", 1)]}
    assert deletion.answered(again, 1, failed=()).is_left_to({1, 2})


def test_replicas_on_live_brokers_hold_up_the_deletion() -> None:
    """It does not wait for a dead broker, but for one that could not delete a log."""
    begun, orders = deletion.start(deletion.begin(TOPIC), {1})
    assert list(orders) == [1]
    assert not begun.is_left_to({1})
    done = deletion.answered(begun, 1, failed=())
    assert done.is_left_to({1}) and not done.is_left_to({1, 2})
    failed = deletion.answered(begun, 1, failed={0})
    assert failed.is_put_off and not failed.is_left_to({1})
    assert failed.is_left_to(())


def test_a_broker_that_returns_is_ordered_to_delete_its_replicas() -> None:
    """Replicas of dead brokers are deleted if the broker returns before the others have deleted."""
    begun, orders = deletion.start(deletion.begin(TOPIC), {1})
    assert list(orders) == [1]
    done = deletion.answered(begun, 1, failed=())
    assert not done.is_left_to({1, 2})
    again, orders = deletion.start(deletion.broker_returned(done, 2), {1, 2})
    assert orders == {2: [("t", 0), ("t", 1)]}
    assert deletion.answered(again, 2, failed=()).is_left_to({1, 2})


def test_the_deletion_waits_for_a_broker_that_dies_during_it() -> None:
    """The replicas of a broker that died before its response are requested again when it returns."""
    begun, _ = deletion.start(deletion.begin(TOPIC), {1, 2})
    left = deletion.broker_gone(deletion.answered(begun, 1, failed=()), 2)
    assert deletion.start(left, {1})[1] == {}
    _, orders = deletion.start(deletion.broker_returned(left, 2), {1, 2})
    assert orders == {2: [("t", 0), ("t", 1)]}

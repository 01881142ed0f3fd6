"""The partitions of a broker that is about to stop: new leaders, and smaller ISRs."""

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller.planning import shutdown

BROKERS = [BrokerImage(key, f"b{key}", 9092, epoch=key) for key in (1, 2, 3)]


def image(*partitions: PartitionImage) -> ClusterImage:
    return (
        ClusterImage().with_brokers(BROKERS).with_topics([TopicImage("t", b"i" * 16, partitions)])
    )


def partition(
    number: int, leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3)
) -> PartitionImage:
    return PartitionImage(number, leader, 4, isr, replicas)


def states(after: ClusterImage) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(item.leader, item.leader_epoch, item.isr) for item in after.topics["t"].partitions]


def test_leaders_move_and_followers_leave_the_isr() -> None:
    """Every change has a new leader epoch, so that followers of the broker stop fetching from it."""
    before = image(partition(0, 1, (1, 2, 3)), partition(1, 2, (2, 1)), partition(2, 3, (3,)))
    after = shutdown.plan_shutdown(before, 1, {1})
    assert states(after) == [(2, 5, (2, 3)), (2, 5, (2,)), (3, 4, (3,))]
    assert after.topics["t"].partitions[2] is before.topics["t"].partitions[2]
    assert shutdown.remaining(after, 1) == []


def test_the_only_member_keeps_leading() -> None:
    """The only member of an ISR keeps leading, because another leader would lose records."""
    before = image(partition(0, 1, (1,)), partition(1, 1, (1,), (1,)))
    after = shutdown.plan_shutdown(before, 1, {1})
    assert after is before
    # A partition without other replicas could never move.
    assert shutdown.remaining(after, 1) == [("t", 0)]


def test_the_only_member_remains_in_the_isr_although_it_does_not_lead() -> None:
    """The only member whose log directory has failed stays in the ISR: with an empty ISR no replica
    could lead again.
    """
    before = image(partition(0, -1, (1,)))
    assert shutdown.plan_shutdown(before, 1, {1}) is before


def test_leaders_do_not_move_to_a_broker_that_stops_as_well() -> None:
    """No leader moves to another broker that stops, because it would have to move again."""
    before = image(partition(0, 1, (1, 2, 3)))
    assert states(shutdown.plan_shutdown(before, 1, {1, 2})) == [(3, 5, (3,))]

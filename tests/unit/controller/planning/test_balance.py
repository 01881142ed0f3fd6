"""Elections of preferred leaders that the controller begins by itself."""

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller.planning import balance


def image(
    *leaders: int, isr: tuple[int, ...] = (1, 2), brokers: tuple[int, ...] = (1, 2)
) -> ClusterImage:
    """Return an image in which every partition prefers broker 1."""
    partitions = tuple(
        PartitionImage(number, leader, 0, isr, (1, 2)) for number, leader in enumerate(leaders)
    )
    return (
        ClusterImage()
        .with_brokers(BrokerImage(key, f"b{key}", 9092) for key in brokers)
        .with_topics([TopicImage("t", b"i" * 16, partitions)])
    )


def test_more_than_the_percentage_is_unbalanced() -> None:
    """One of ten is exactly ten percent, which is allowed."""
    assert balance.unbalanced(image(2, *[1] * 9), 10) == []
    assert balance.unbalanced(image(2, 2, *[1] * 8), 10) == [("t", 0), ("t", 1)]


def test_only_possible_elections_are_returned() -> None:
    """The preferred replica must be live and in sync."""
    assert balance.unbalanced(image(2, 2, isr=(2,)), 10) == []
    assert balance.unbalanced(image(2, 2, brokers=(2,)), 10) == []


def test_a_partition_that_moves_is_left_alone() -> None:
    """No election is planned for a partition that is being reassigned: the reassignment elects a
    leader.
    """
    moving = PartitionImage(0, 2, 0, (1, 2), (1, 2, 3), adding_replicas=(3,))
    before = image(2, 2)
    topic = before.topics["t"].with_partitions([moving])
    assert balance.unbalanced(before.with_topics([topic]), 10) == [("t", 1)]

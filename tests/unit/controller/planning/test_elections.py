"""Elections on request: which replica can be elected, and the result of each partition."""

from dataclasses import replace

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller.planning.elections import ElectionType, plan_elections, unclean

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def image(*partitions: PartitionImage, live: tuple[int, ...] = (1, 2)) -> ClusterImage:
    """Return a cluster with topic `t`."""
    brokers = [BrokerImage(number, "h", 9000 + number) for number in live]
    topic = TopicImage("t", bytes(15) + b"\1", partitions)
    return ClusterImage().with_brokers(brokers).with_topics([topic])


def partition(leader: int, isr: tuple[int, ...]) -> PartitionImage:
    """Return a partition on brokers 2 and 1, of which 2 is preferred."""
    return PartitionImage(0, leader, 5, isr, (2, 1))


def test_a_preferred_election_restores_the_preferred_leader() -> None:
    """The leader epoch grows and the ISR stays; a repeated partition is ELECTION_NOT_NEEDED."""
    before = image(partition(leader=1, isr=(1, 2)))
    after, results = plan_elections(before, PREFERRED, [("t", 0), ("t", 0)])
    partition_image = after.partition("t", 0)
    assert partition_image is not None
    assert (partition_image.leader, partition_image.leader_epoch, partition_image.isr) == (
        2,
        6,
        (1, 2),
    )
    assert results[0].error is None
    assert results[1].error is not None
    assert results[1].error.code is ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.parametrize(
    ("kind", "state", "live", "code"),
    [
        (PREFERRED, partition(1, (1,)), (1, 2), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (PREFERRED, partition(1, (1, 2)), (1,), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (PREFERRED, partition(2, (2,)), (1, 2), ErrorCode.ELECTION_NOT_NEEDED),
        (UNCLEAN, partition(1, (1,)), (1, 2), ErrorCode.ELECTION_NOT_NEEDED),
        (UNCLEAN, partition(-1, (2,)), (3,), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        (UNCLEAN, replace(partition(-1, ()), leader_epoch=-1), (3,),
         ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)  # fmt: skip
def test_an_impossible_election_changes_nothing(
    kind: ElectionType, state: PartitionImage, live: tuple[int, ...], code: ErrorCode
) -> None:
    """The image is identical to the one before."""
    before = image(state, live=live)
    after, (result,) = plan_elections(before, kind, [("t", 0)])
    assert after is before
    assert result.error is not None
    assert result.error.code is code


def test_an_unclean_election_elects_any_live_replica() -> None:
    """The ISR is the new leader alone, which is marked as recovering."""
    before = image(partition(leader=-1, isr=(2,)), live=(1,))
    after, (result,) = plan_elections(before, UNCLEAN, [("t", 0)])
    partition_image = after.partition("t", 0)
    assert result.error is None
    assert partition_image is not None
    assert (partition_image.leader, partition_image.isr, partition_image.is_recovering) == (
        1,
        (1,),
        True,
    )


def test_the_error_names_an_unknown_partition() -> None:
    """The messages for an unknown topic and an unknown partition differ."""
    _, results = plan_elections(image(partition(2, (2,))), PREFERRED, [("u", 0), ("t", 1)])
    messages = [item.error.message for item in results if item.error is not None]
    assert messages == ["No such topic as u", "No such partition as t-1"]


def test_unclean_elections_are_found() -> None:
    """A leader from outside the ISR counts; the first leader and the loss of a leader do not."""
    offline = image(partition(leader=-1, isr=(2,)), live=(1,))
    after, _ = plan_elections(offline, UNCLEAN, [("t", 0)])
    assert unclean(offline, after) == [("t", 0)]
    assert unclean(after, after) == []
    assert unclean(ClusterImage(), after) == []
    assert unclean(image(partition(2, (2,))), offline) == []
    unborn = image(replace(partition(-1, ()), leader_epoch=-1))
    assert unclean(unborn, image(partition(2, (1, 2)))) == []
    assert unclean(image(partition(1, (1, 2))), image(partition(2, (1, 2)))) == []

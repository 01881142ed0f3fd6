"""Reassignments of partitions: begin, completion, change of target and cancellation."""

from dataclasses import replace

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import (
    NO_EPOCH,
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from ottla.cluster.zk.port import SetData
from ottla.controller.planning.reassignment import (
    ReassignmentConditions,
    begun,
    cancelled,
    completed,
    dropped,
    ongoing,
    plan_topic,
    write_topic,
)
from ottla.controller.planning.requests import Reassignment

LIVE = ReassignmentConditions(live={1, 2, 3, 4})
UNCLEAN = LIVE._replace(is_unclean=True)
P0 = PartitionImage(0, 1, 5, isr=(1, 2), replicas=(1, 2), partition_epoch=8)


def topic(*partitions: PartitionImage) -> TopicImage:
    """Return topic `t`."""
    return TopicImage("t", bytes(15) + b"\1", partitions)


def moves(partition: PartitionImage) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the replicas, the adding replicas and the removing replicas."""
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_a_reassignment_begins_with_old_and_new_replicas() -> None:
    """The leader and the ISR stay as they are, in the next leader epoch."""
    after = begun(P0, (3, 1), LIVE)
    assert moves(after) == ((3, 1, 2), (3,), (2,))
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1, 2), 6)
    assert after.is_being_reassigned


def test_a_reassignment_is_complete_when_the_new_replicas_are_in_sync() -> None:
    """If the leader is removed, one of the remaining replicas becomes the leader."""
    under_way = begun(P0, (3, 4), LIVE)
    assert completed(under_way, LIVE) is under_way
    partly = replace(under_way, isr=(1, 2, 3))
    assert completed(partly, LIVE) is partly
    after = completed(replace(under_way, isr=(1, 2, 3, 4)), LIVE)
    assert moves(after) == ((3, 4), (), ())
    assert (after.leader, after.isr, after.leader_epoch) == (3, (3, 4), 7)


@pytest.mark.parametrize(
    ("target", "leader", "isr"), [((2, 1), 1, (1, 2)), ((2,), 2, (2,)), ((1,), 1, (1,))]
)
def test_a_reassignment_without_new_replicas_completes_immediately(
    target: tuple[int, ...], leader: int, isr: tuple[int, ...]
) -> None:
    """Another order, or fewer replicas, takes one step of the leader epoch."""
    after = begun(P0, target, LIVE)
    assert moves(after) == (target, (), ())
    assert (after.leader, after.isr, after.leader_epoch) == (leader, isr, 6)


def test_remaining_replicas_must_all_be_in_sync() -> None:
    """The old replicas stay until every remaining replica is in sync."""
    before = replace(P0, replicas=(1, 2, 3), isr=(1, 2))
    after = begun(before, (3,), LIVE)
    assert moves(after) == ((3, 1, 2), (), (1, 2))
    assert completed(replace(after, isr=(1, 2, 3)), LIVE).replicas == (3,)


def test_the_current_target_is_no_reassignment() -> None:
    """The partition is returned unchanged, also while it is moving to that target."""
    assert begun(P0, (1, 2), LIVE) is P0
    under_way = begun(P0, (3, 1), LIVE)
    assert begun(under_way, (3, 1), LIVE) is under_way


def test_a_reassignment_can_change_its_target() -> None:
    """Replicas that only the former target added leave the replicas and the ISR immediately."""
    under_way = replace(begun(P0, (3, 1), LIVE), isr=(1, 2, 3))
    after = begun(under_way, (4, 1), LIVE)
    assert moves(after) == ((4, 1, 2), (4,), (2,))
    assert after.isr == (1, 2)


def test_a_cancelled_reassignment_restores_the_old_replicas() -> None:
    """The order of the replicas is restored, too."""
    under_way = replace(begun(P0, (3, 1), LIVE), isr=(3, 1, 2), leader=3)
    after = cancelled(under_way, LIVE)
    assert moves(after) == ((1, 2), (), ())
    assert (after.leader, after.isr, after.is_recovering) == (1, (1, 2), False)


def test_cancelling_without_another_in_sync_replica_needs_an_unclean_election() -> None:
    """The cancellation is rejected unless the topic allows unclean elections."""
    under_way = replace(begun(P0, (3, 4), LIVE), isr=(3,), leader=3)
    with pytest.raises(ApiError) as caught:
        cancelled(under_way, LIVE)
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    after = cancelled(under_way, UNCLEAN)
    assert (after.leader, after.isr, after.is_recovering) == (1, (1,), True)


def test_a_partition_without_leader_epoch_is_reassigned_immediately() -> None:
    """A partition that never had a leader simply gets other replicas."""
    new = PartitionImage(0, NO_LEADER, NO_EPOCH, isr=(), replicas=(9,))
    after = begun(new, (1,), LIVE)
    assert (moves(after), after.leader_epoch) == (((1,), (), ()), NO_EPOCH)


@pytest.mark.parametrize(
    ("target", "rules", "code"),
    [
        ((), LIVE, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), LIVE, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), LIVE, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((-1,), LIVE, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            (1, 2, 3),
            LIVE._replace(may_change_factor=False),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
    ],
)
def test_invalid_targets_are_rejected(
    target: tuple[int, ...], rules: ReassignmentConditions, code: ErrorCode
) -> None:
    """An empty target, duplicates, unknown brokers and another replication factor are errors."""
    with pytest.raises(ApiError) as caught:
        begun(P0, target, rules)
    assert caught.value.code is code


def test_a_dead_replica_may_remain() -> None:
    """Only new replicas must be alive."""
    after = begun(P0, (3, 2), ReassignmentConditions(live={1, 3}))
    assert moves(after) == ((3, 2, 1), (3,), (1,))
    assert after.offline_replicas == (2,)


def test_each_partition_has_its_result() -> None:
    """A partition that cannot be reassigned does not prevent the others."""
    requests = [
        Reassignment("t", 0, (3, 1)),
        Reassignment("t", 0, None),
        Reassignment("t", 0, None),
        Reassignment("t", 7, (1,)),
    ]
    after, results = plan_topic(topic(P0), requests, LIVE)
    codes = [None if item.error is None else item.error.code for item in results]
    none_under_way, unknown = (
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert codes == [None, None, none_under_way, unknown]
    assert after is not None
    assert moves(after.partitions[0]) == ((1, 2), (), ())
    gone, (result,) = plan_topic(None, [Reassignment("u", 0, (1,))], LIVE)
    assert gone is None
    assert result.error is not None
    assert result.error.message == "Unable to find a topic named u."


def test_assignment_and_states_are_written_in_one_step() -> None:
    """The returned topic has the partition epochs that its nodes will have."""
    before = topic(P0, replace(P0, partition=1))
    after, _ = plan_topic(before, [Reassignment("t", 1, (3, 1))], LIVE)
    assert after is not None
    write = write_topic(before, after, controller_epoch=4)
    assignment, state = write.operations
    assert isinstance(assignment, SetData)
    assert isinstance(state, SetData)
    assert assignment.path == "/brokers/topics/t"
    assert b'"adding_replicas":{"1":[3]}' in assignment.data
    assert (state.path, state.version) == ("/brokers/topics/t/partitions/1/state", 8)
    assert [item.partition_epoch for item in write.topics[0].partitions] == [8, 9]


def test_dropped_and_ongoing_reassignments_are_listed() -> None:
    """Dropped replicas are listed by broker, and ongoing moves for all or for the given partitions."""
    brokers = [BrokerImage(number, "h", 9000 + number) for number in (1, 2, 3)]
    before = ClusterImage().with_brokers(brokers).with_topics([topic(P0, replace(P0, partition=1))])
    moved = topic(begun(P0, (1,), LIVE), begun(replace(P0, partition=1), (3,), LIVE))
    after = before.with_topics([moved])
    assert dropped(before, after, ["t", "u"]) == {2: [("t", 0)]}
    assert ongoing(before, None) == {}
    assert ongoing(after, None) == {"t": [moved.partitions[1]]}
    assert ongoing(after, [("t", 0), ("u", 0), ("t", 1), ("t", 5)]) == {"t": [moved.partitions[1]]}

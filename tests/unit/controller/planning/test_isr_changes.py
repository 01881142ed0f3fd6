"""The proposed ISRs that a controller accepts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller.planning import isr_changes
from ottla.controller.planning.isr_changes import IsrRequest

ID = b"i" * 16
BROKERS = {key: BrokerImage(key, f"b{key}", 9092, epoch=10 + key) for key in (1, 2, 3)}
PARTITION = PartitionImage(0, 1, 4, (1, 2), (1, 2, 3), partition_epoch=7)


def image(partition: PartitionImage = PARTITION) -> ClusterImage:
    topic = TopicImage("t", ID, (partition,))
    return ClusterImage().with_brokers(BROKERS.values()).with_topics([topic])


def request(*members: int, **fields: object) -> IsrRequest:
    isr = tuple((member, -1) for member in members)
    values = {"leader_epoch": 4, "partition_epoch": 7, "isr": isr, **fields}
    return IsrRequest(topic_id=ID, partition=0, **values)  # type: ignore[arg-type]


def error_of(requested: IsrRequest, partition: PartitionImage = PARTITION) -> ErrorCode:
    plan = isr_changes.plan(image(partition), [requested], BROKERS)
    (error,) = plan.errors
    return error


@pytest.mark.parametrize("members", [(1,), (1, 2, 3), (3, 1)])
def test_a_leader_grows_and_shrinks_its_isr(members: tuple[int, ...]) -> None:
    """The leader epoch stays the same when a leader changes its own ISR."""
    plan = isr_changes.plan(image(), [request(*members)], BROKERS)
    after = plan.image.partition("t", 0)
    assert after is not None
    assert (plan.errors, plan.topics) == ([ErrorCode.NONE], ("t",))
    assert (after.isr, after.leader_epoch) == (members, 4)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request(1, leader_epoch=5), ErrorCode.NOT_CONTROLLER),
        (request(1, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (request(1, leader_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (request(1, partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (request(2, 3), ErrorCode.INVALID_REQUEST),
        (request(), ErrorCode.INVALID_REQUEST),
        (request(1, 1), ErrorCode.INVALID_REQUEST),
        (request(1, 9), ErrorCode.INVALID_REQUEST),
        (request(1, is_recovering=True), ErrorCode.INVALID_REQUEST),
        (request(1, 3, isr=((1, -1), (3, 12))), ErrorCode.INELIGIBLE_REPLICA),
        (request(1)._replace(topic_id=b"?" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (request(1)._replace(partition=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_proposal_is_refused(asked: IsrRequest, code: ErrorCode) -> None:
    """The image does not change, and the error code gives the reason."""
    before = image()
    plan = isr_changes.plan(before, [asked], BROKERS)
    assert plan.errors == [code]
    assert plan.image is before
    assert plan.topics == ()


def test_a_repeated_proposal_is_answered_like_the_first() -> None:
    """The first response was lost, so the leader has an old partition epoch."""
    before = image()
    plan = isr_changes.plan(before, [request(2, 1, partition_epoch=6)], BROKERS)
    assert plan.errors == [ErrorCode.NONE]
    assert plan.image is before


def test_a_broker_of_a_later_registration_does_not_join() -> None:
    """A broker that restarted after its fetch does not join: it may have lost records (KIP-903)."""
    assert error_of(request(isr=((1, -1), (2, 12), (3, 13)))) is ErrorCode.NONE
    assert error_of(request(isr=((1, -1), (2, 12), (3, 11)))) is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_that_is_not_eligible_does_not_join() -> None:
    """A broker that is shutting down or not registered does not join the ISR."""
    eligible = {key: BROKERS[key] for key in (1, 2)}
    plan = isr_changes.plan(image(), [request(1, 2, 3)], eligible)
    assert plan.errors == [ErrorCode.INELIGIBLE_REPLICA]


def test_a_leader_recovers_before_others_join() -> None:
    """After an unclean election the leader is the only member until it reports its recovery
    (KIP-704).
    """
    recovering = PartitionImage(0, 1, 4, (1,), (1, 2, 3), partition_epoch=7, is_recovering=True)
    assert error_of(request(1, 2, is_recovering=True), recovering) is ErrorCode.INVALID_REQUEST
    plan = isr_changes.plan(image(recovering), [request(1, 2)], BROKERS)
    after = plan.image.partition("t", 0)
    assert after is not None
    assert (plan.errors, after.is_recovering) == ([ErrorCode.NONE], False)


@settings(derandomize=True, database=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 4]), max_size=4),
    st.integers(3, 5),
    st.integers(6, 8),
    st.sets(st.sampled_from([1, 2, 3])),
)
def test_an_accepted_isr_is_safe(
    members: list[int], leader_epoch: int, partition_epoch: int, eligible: set[int]
) -> None:
    """An accepted ISR contains the leader, only replicas, and only eligible brokers."""
    requested = request(*members, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
    plan = isr_changes.plan(image(), [requested], {key: BROKERS[key] for key in eligible})
    after = plan.image.partition("t", 0)
    assert after is not None
    if after is PARTITION or set(after.isr) == {1, 2}:
        return
    assert plan.errors == [ErrorCode.NONE]
    assert set(after.isr) <= eligible & {1, 2, 3}
    assert 1 in after.isr
    assert (leader_epoch, partition_epoch) == (4, 7)

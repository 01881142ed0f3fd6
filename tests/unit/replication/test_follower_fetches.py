"""The requests of a follower, and the effects of the responses."""

import random

import pytest

from ottla.base.errors import ErrorCode
from ottla.replication.follower_fetches import (
    VERSION,
    Diverged,
    FetchedPartition,
    Followed,
    FollowerFetches,
    FollowerFetchLimits,
    OutOfRange,
)
from ottla.wire.follower_fetch import LeaderRecords, request_body
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.schema import encoder

TOPIC = b"t" * 16
KEY = (TOPIC, 0)
BACKOFF = 1.0
LIMITS = FollowerFetchLimits()


def fetches(*, offset: int = 7, last_epoch: int = 3) -> tuple[FollowerFetches, Followed]:
    """Return the fetches of broker 2, which follows one partition in epoch 4."""
    result = FollowerFetches(2)
    followed = Followed("orders", KEY, 4)
    followed.move_to(offset, last_epoch, 0)
    result.follow(followed)
    return result, followed


def requested(result: FollowerFetches, now: float = 0.0) -> FetchRequest:
    request = result.next_request(now, 99, LIMITS)
    assert request is not None
    return request


def response(**fields: object) -> FetchResponse:
    data = PartitionData(partition_index=0, **fields)  # type: ignore[arg-type]
    topic = FetchableTopicResponse(topic_id=TOPIC, partitions=[data])
    return FetchResponse(session_id=5, responses=[topic])


def test_a_request_says_where_the_log_ends_and_in_which_epoch() -> None:
    """A request contains the end of the log and its epoch; the leader compares both with its own
    log.
    """
    result, _ = fetches()
    request = requested(result)
    assert request.replica_state is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 99)
    (partition,) = request.topics[0].partitions
    assert request.topics[0].topic_id == TOPIC
    assert partition.fetch_offset == 7
    assert partition.last_fetched_epoch == 3
    assert partition.current_leader_epoch == 4


def test_records_continue_the_log_at_the_requested_offset() -> None:
    """The effect contains the data and the position."""
    result, followed = fetches()
    requested(result)
    (effect,) = result.received(response(records=b"x", high_watermark=6), 0.0, BACKOFF)
    assert isinstance(effect, FetchedPartition)
    assert effect.followed is followed
    assert effect.data.high_watermark == 6


def test_a_response_for_a_former_leader_epoch_is_ignored() -> None:
    """The partition was followed again while the request was on its way."""
    result, _ = fetches()
    requested(result)
    again = Followed("orders", KEY, 5)
    again.move_to(7, 3, 0)
    result.follow(again)
    assert result.received(response(records=b"x"), 0.0, BACKOFF) == []


def test_a_response_after_the_log_has_moved_is_ignored() -> None:
    """Records for another offset would leave a gap or repeat records."""
    result, followed = fetches()
    requested(result)
    followed.move_to(5, 2, 0)
    assert result.received(response(records=b"x"), 0.0, BACKOFF) == []


def test_a_diverging_epoch_is_reported_before_any_records() -> None:
    """The follower truncates first."""
    result, followed = fetches()
    requested(result)
    diverging = EpochEndOffset(epoch=2, end_offset=5)
    effects = result.received(response(diverging_epoch=diverging, records=b"x"), 0.0, BACKOFF)
    assert effects == [Diverged(followed, 2, 5)]


def test_an_offset_out_of_range_is_reported() -> None:
    """The leader has deleted the records, or lost them in an unclean election."""
    result, followed = fetches()
    requested(result)
    error = int(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert result.received(response(error_code=error), 0.0, BACKOFF) == [OutOfRange(followed)]


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH]
)
def test_a_leader_that_is_not_ready_is_asked_again_after_a_pause(error: ErrorCode) -> None:
    """The controller's decision reaches the two brokers at different times.

    The pauses become longer, up to the back-off, until the leader responds.
    """
    result, _ = fetches()
    now, pauses = 10.0, []
    for _ in range(8):
        requested(result, now)
        assert result.received(response(error_code=int(error)), now, BACKOFF) == []
        assert result.next_request(now + 0.01, 99, LIMITS) is None
        due_at = result.next_due_at()
        assert due_at is not None
        pauses.append(round(due_at - now, 3))
        now = due_at
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, BACKOFF, BACKOFF]
    requested(result, now)
    assert result.received(response(records=b"x"), now, BACKOFF)
    requested(result, now)
    result.received(response(error_code=int(error)), now, BACKOFF)
    assert result.next_due_at() == pytest.approx(now + 0.02)


def test_a_damaged_answer_is_asked_for_again_after_the_back_off() -> None:
    """A damaged response is followed by the full back-off, because the next one is probably
    damaged, too.
    """
    result, _ = fetches()
    requested(result)
    error = int(ErrorCode.CORRUPT_MESSAGE)
    assert result.received(response(error_code=error), 10.0, BACKOFF) == []
    assert result.next_due_at() == 11.0


def test_a_request_does_not_wait_longer_than_other_partitions_pause() -> None:
    """There is one request at a time: a long wait would delay the partition that is due next."""
    result, followed = fetches()
    other = Followed("payments", (b"p" * 16, 0), 4)
    result.follow(other)
    followed.due_at = 10.25
    request = requested(result, 10.0)
    assert [topic.topic_id for topic in request.topics] == [b"p" * 16]
    assert request.max_wait_ms == 250
    followed.due_at = 0.0
    assert requested(result, 10.1).max_wait_ms == LIMITS.wait_ms


def test_a_fenced_follower_waits_for_the_controller() -> None:
    """The leader has a newer epoch, and this broker will receive it."""
    result, _ = fetches()
    requested(result)
    result.received(response(error_code=int(ErrorCode.FENCED_LEADER_EPOCH)), 0.0, BACKOFF)
    assert result.next_due_at() is None
    assert result.next_request(1e9, 99, LIMITS) is None


def test_a_lost_session_is_replaced_at_once() -> None:
    """After a session error the follower sends a full request without a back-off."""
    result, _ = fetches()
    requested(result)
    lost = FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert result.received(lost, 0.0, BACKOFF) == []
    assert requested(result).topics


def test_a_failed_request_is_repeated_after_the_back_off() -> None:
    """It is unknown whether the leader received it, so the next request is a full one."""
    result, _ = fetches()
    requested(result)
    result.received(response(), 0.0, BACKOFF)
    assert requested(result).session_epoch == 1
    result.interrupted(20.0, BACKOFF)
    assert result.next_request(20.5, 99, LIMITS) is None
    again = requested(result, 21.0)
    assert again.session_epoch == 0
    assert again.topics


def test_a_refused_request_is_repeated_after_the_back_off() -> None:
    """After an error of the whole response the follower waits for the back-off before it
    retries.
    """
    result, _ = fetches()
    requested(result)
    refused = FetchResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    result.received(refused, 5.0, BACKOFF)
    assert result.next_due_at() == 6.0


def test_a_request_costs_as_much_as_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The follower reads the position of the one partition of a thousand that moved."""
    result = FollowerFetches(2)
    followed = [Followed("orders", (TOPIC, number), 4) for number in range(1000)]
    for one in followed:
        result.follow(one)
    requested(result)
    result.received(FetchResponse(session_id=5), 0.0, BACKOFF)
    positions: list[int] = []
    original = Followed.position
    monkeypatch.setattr(
        Followed, "position", lambda one: positions.append(one.key[1]) or original(one)
    )
    followed[7].move_to(1, 4, 0)
    followed[8].move_to(0, -1, 0)
    request = requested(result)
    assert positions == [7]
    assert [item.partition for item in request.topics[0].partitions] == [7]


@pytest.mark.parametrize("seed", range(20))
def test_the_session_of_the_leader_has_the_due_partitions(seed: int) -> None:
    """After any sequence of changes, pauses and lost responses, the leader knows the positions of
    all partitions that are due, and of no other.
    """
    rng, result, known, now = random.Random(seed), FollowerFetches(2), {}, 0.0
    followed: dict[int, Followed] = {}
    for _ in range(300):
        now += rng.choice((0.0, 0.3))
        number = rng.randrange(6)
        one = followed.get(number)
        action = rng.randrange(8)
        if action < 2 or one is None:
            followed[number] = Followed("orders", (TOPIC, number), rng.randrange(9))
            result.follow(followed[number])
        elif action == 2:
            result.unfollow((TOPIC, number))
            del followed[number]
        elif action == 3:
            one.move_to(rng.randrange(9), 4, 0)
        elif action == 4:
            one.due_at = now + rng.random()
        elif action == 5:
            one.is_failed = rng.random() < 0.5
        due = {
            key: (one.offset, one.leader_epoch) for key, one in followed.items() if one.is_due(now)
        }
        request = result.next_request(now, 99, LIMITS)
        if request is None:
            assert not due
            due_at = result.next_due_at()
            waiting = [one.due_at for one in followed.values() if not one.is_failed]
            assert due_at == (min(waiting) if waiting else None)
            continue
        if request.session_epoch == 0:
            known.clear()
        for forgotten in request.forgotten_topics_data:
            for item in forgotten.partitions:
                del known[item]
        for topic in request.topics:
            for item in topic.partitions:
                known[item.partition] = item.fetch_offset, item.current_leader_epoch
        assert known == due
        if rng.random() < 0.1:
            result.interrupted(now, 0.0)
        else:
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH if rng.random() < 0.1 else ErrorCode.NONE
            result.received(FetchResponse(session_id=5, error_code=int(code)), now, BACKOFF)


def received(result: FollowerFetches, *, number: int = 0, session: int = 5) -> list[object]:
    """Return the effects of records of one partition, read without the codec."""
    records = LeaderRecords(session, TOPIC, number, 9, 9, 1, memoryview(b"records"))
    return list(result.received_records(records))


def test_a_partition_that_has_moved_alone_is_requested_without_the_codec() -> None:
    """The request has the bytes that the codec would write for it."""
    (short, one), (long, other) = fetches(), fetches()
    for result in (short, long):
        # The first request has all partitions.
        assert result.next_move(0.0, 99, LIMITS) is None
        requested(result)
        result.received(response(high_watermark=7, records=b"x"), 0.0, BACKOFF)
    for offset in (8, 9):
        one.move_to(offset, 4, 1)
        other.move_to(offset, 4, 1)
        move = short.next_move(0.0, 99, LIMITS)
        assert move is not None
        assert request_body(move) == encoder(FetchRequest, VERSION)(requested(long))
        long.received(response(high_watermark=7, records=b"x"), 0.0, BACKOFF)
        (effect,) = received(short)
        assert isinstance(effect, FetchedPartition)
        assert effect.followed is one
        assert (effect.data.high_watermark, effect.data.log_start_offset) == (9, 1)
        assert effect.data.records == b"records"


def test_other_requests_are_for_the_codec() -> None:
    """Nothing or several partitions have moved, one pauses, or the session begins again."""
    result, followed = fetches()
    second = Followed("orders", (TOPIC, 1), 4)
    result.follow(second)
    requested(result)
    result.received(response(high_watermark=7), 0.0, BACKOFF)
    assert result.next_move(0.0, 99, LIMITS) is None
    followed.move_to(8, 4, 0)
    second.move_to(1, 4, 0)
    assert result.next_move(0.0, 99, LIMITS) is None
    requested(result)
    followed.due_at = 5.0
    assert result.next_move(0.0, 99, LIMITS) is None
    requested(result)
    second.move_to(2, 4, 0)
    # The other one pauses, and must not wait for the end of this request.
    assert result.next_move(0.0, 99, LIMITS) is None
    requested(result, now=6.0)
    result.interrupted(6.0, 0.0)
    second.move_to(3, 4, 0)
    assert result.next_move(6.0, 99, LIMITS) is None


def test_records_that_were_not_requested_have_no_effect() -> None:
    """The partition is not followed any more, is another one, or has moved since the request."""
    result, followed = fetches()
    requested(result)
    assert not received(result, number=1)
    followed.move_to(8, 4, 0)
    assert not received(result)
    result.next_move(0.0, 99, LIMITS)
    result.unfollow(KEY)
    assert not received(result)

"""The follower's half of a fetch session."""

from ottla.base.errors import ErrorCode
from ottla.replication.fetch_session import FetchSession, SessionPosition

A = (b"a" * 16, 0)
B = (b"b" * 16, 0)
START = SessionPosition(offset=0, leader_epoch=1, last_fetched_epoch=-1, log_start_offset=0)
MOVED = START._replace(offset=5, last_fetched_epoch=1)


def established() -> FetchSession:
    session = FetchSession()
    session.next_request({A: START, B: START})
    session.answered(ErrorCode.NONE, 77)
    return session


def test_the_first_request_is_full_and_the_next_ones_contain_only_changes() -> None:
    """A partition whose position has not changed is not sent again."""
    session = FetchSession()
    first = session.next_request({A: START, B: START})
    assert (first.session_id, first.epoch) == (0, 0)
    assert first.changed == {A: START, B: START}
    session.answered(ErrorCode.NONE, 77)
    second = session.next_request({A: MOVED, B: START})
    assert (second.session_id, second.epoch) == (77, 1)
    assert second.changed == {A: MOVED}
    assert second.forgotten == ()


def test_a_partition_that_is_no_longer_fetched_is_forgotten() -> None:
    """A partition that is no longer fetched is in the forgotten topics; if it returns, it is sent
    again.
    """
    session = established()
    assert session.next_request({}, [B]).forgotten == (B,)
    session.answered(ErrorCode.NONE, 77)
    assert session.next_request({A: START, B: START}, []).changed == {B: START}


def test_a_full_request_has_the_partitions_that_did_not_change() -> None:
    """A caller names changes; the session knows the other partitions."""
    session = established()
    session.next_request({A: MOVED})
    session.answered(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    after = session.next_request({})
    assert (after.epoch, after.changed) == (0, {A: MOVED, B: START})


def test_a_leader_without_room_for_a_session_gets_full_requests() -> None:
    """Session id 0 in a response means that there is no session."""
    session = FetchSession()
    session.next_request({A: START})
    session.answered(ErrorCode.NONE, 0)
    second = session.next_request({A: START})
    assert (second.session_id, second.epoch) == (0, 0)
    assert second.changed == {A: START}


def test_an_unknown_session_is_followed_by_a_full_request_for_a_new_one() -> None:
    """After FETCH_SESSION_ID_NOT_FOUND (the session was evicted, or the leader restarted) a full
    request begins a new session.
    """
    session = established()
    session.next_request({A: START})
    session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    after = session.next_request({A: START})
    assert (after.session_id, after.epoch) == (0, 0)


def test_a_lost_response_closes_the_session() -> None:
    """The next full request names the old session, so that the leader can drop it."""
    session = established()
    session.next_request({A: MOVED})
    session.interrupted()
    after = session.next_request({}, [B])
    assert (after.session_id, after.epoch) == (77, 0)
    assert after.changed == {A: MOVED}

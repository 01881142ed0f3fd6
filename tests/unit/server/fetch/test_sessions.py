"""Incremental fetch sessions (KIP-227): creation, eviction, and the partitions of a response."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.server.fetch.sessions import EVICTION_SECONDS, FetchSessions
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tests.handlers.logs import Clock


def request(count: int, *, session_id: int = 0, epoch: int = 0, first: int = 0) -> FetchRequest:
    partitions = [FetchPartition(partition=first + number) for number in range(count)]
    topics = [FetchTopic(topic="t", partitions=partitions)] if count else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> FetchSessions:
    """Return a cache with room for two sessions."""
    return FetchSessions(2, clock=clock, rng=SeededRng(1))


def begin(sessions: FetchSessions, requested: FetchRequest) -> int:
    return sessions.begin(requested, 12).session_id


def test_sessionless_fetch_opens_no_session(sessions: FetchSessions) -> None:
    """A fetch with epoch -1 creates no session."""
    assert begin(sessions, request(1, epoch=-1)) == 0
    assert len(sessions) == 0


def test_a_session_may_begin_without_partitions(sessions: FetchSessions) -> None:
    """The partitions may follow in the next fetch."""
    session_id = begin(sessions, request(0))
    assert session_id != 0
    assert begin(sessions, request(1, session_id=session_id, epoch=1)) == session_id


def test_epochs_follow_each_other(sessions: FetchSessions) -> None:
    """The epochs are 1, 2, 3 and so on, and 1 follows the largest."""
    session_id = begin(sessions, request(1))
    for epoch in (1, 2, 3):
        assert begin(sessions, request(0, session_id=session_id, epoch=epoch)) == session_id
    session = sessions.begin(request(0, session_id=session_id, epoch=4), 12).session
    assert session is not None
    session.epoch = 2**31 - 1
    sessions.begin(request(0, session_id=session_id, epoch=2**31 - 1), 12)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_full_fetch_ends_the_former_session(sessions: FetchSessions, epoch: int) -> None:
    """A client that restarts or leaves frees its slot."""
    old = begin(sessions, request(1))
    begin(sessions, request(1, session_id=old, epoch=epoch))
    with pytest.raises(ApiError) as refused:
        sessions.begin(request(0, session_id=old, epoch=1), 12)
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_active_sessions_are_not_evicted(sessions: FetchSessions) -> None:
    """If all slots are in use, a new client gets no session."""
    first, second = begin(sessions, request(1)), begin(sessions, request(1))
    assert begin(sessions, request(9)) == 0
    assert begin(sessions, request(0, session_id=first, epoch=1)) == first
    assert begin(sessions, request(0, session_id=second, epoch=1)) == second


def test_idle_session_is_evicted(sessions: FetchSessions, clock: Clock) -> None:
    """The least recently used session is evicted after two minutes without use."""
    first, second = begin(sessions, request(1)), begin(sessions, request(1))
    clock.now += EVICTION_SECONDS
    begin(sessions, request(0, session_id=first, epoch=1))
    clock.now += 1
    assert begin(sessions, request(1)) > 0
    assert begin(sessions, request(0, session_id=first, epoch=2)) == first
    with pytest.raises(ApiError):
        begin(sessions, request(0, session_id=second, epoch=1))


def test_idle_session_of_a_follower_is_evicted_early(clock: Clock) -> None:
    """A follower that was killed is not the reason to remember its partitions for ever."""
    sessions = FetchSessions(100, clock=clock, rng=SeededRng(1), drops_idle=True)
    killed, alive = begin(sessions, request(9)), begin(sessions, request(1))
    clock.now += EVICTION_SECONDS
    begin(sessions, request(0, session_id=alive, epoch=1))
    assert begin(sessions, request(1)) > 0
    assert len(sessions) == 3
    clock.now += 1
    assert begin(sessions, request(1)) > 0
    assert {session.id for session in sessions} >= {alive}
    assert killed not in {session.id for session in sessions}


def test_larger_session_evicts_an_old_small_one(sessions: FetchSessions, clock: Clock) -> None:
    """A session with more partitions is worth more and evicts a smaller one."""
    small, large = begin(sessions, request(1)), begin(sessions, request(5))
    clock.now += EVICTION_SECONDS + 1
    for session_id in (small, large):
        begin(sessions, request(0, session_id=session_id, epoch=1))
    assert begin(sessions, request(1)) == 0
    assert begin(sessions, request(3)) > 0
    assert begin(sessions, request(0, session_id=large, epoch=2)) == large


def test_no_slots_means_no_sessions(clock: Clock) -> None:
    """The value 0 of max.incremental.fetch.session.cache.slots disables sessions."""
    assert begin(FetchSessions(0, clock=clock, rng=SeededRng(1)), request(1)) == 0


def test_a_session_without_partitions_ends(sessions: FetchSessions) -> None:
    """A session that has no partitions left is closed."""
    session_id = begin(sessions, request(1))
    forget = request(0, session_id=session_id, epoch=1)
    forget.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    assert begin(sessions, forget) == 0
    assert len(sessions) == 0


def answers(sessions: FetchSessions, session_id: int, epoch: int, with_data: set[int]) -> list[int]:
    """Respond to one fetch; return the partitions that the response mentions."""
    plan = sessions.begin(request(0, session_id=session_id, epoch=epoch), 12)
    rows = [
        (
            fetch,
            PartitionData(
                partition_index=fetch.partition,
                high_watermark=epoch if fetch.partition in with_data else 0,
                log_start_offset=0,
                records=b"r" if fetch.partition in with_data else b"",
            ),
        )
        for fetch in plan.partitions
    ]
    return [response.partition_index for _, response in plan.included(rows)]


def test_partitions_with_data_move_to_the_end(sessions: FetchSessions) -> None:
    """Each partition comes first in turn, whatever the limits of the response are."""
    session_id = begin(sessions, request(4))
    assert answers(sessions, session_id, 1, {0, 1, 2, 3}) == [0, 1, 2, 3]
    assert answers(sessions, session_id, 2, {1, 3}) == [0, 1, 2, 3]
    assert answers(sessions, session_id, 3, {0, 1, 2, 3}) == [0, 2, 1, 3]


def test_error_is_repeated_until_it_is_resolved(sessions: FetchSessions) -> None:
    """An error is repeated in each response, and the first response without it mentions the
    partition.
    """
    session_id = begin(sessions, request(1))

    def tell(epoch: int, code: int) -> int:
        plan = sessions.begin(request(0, session_id=session_id, epoch=epoch), 12)
        (fetch,) = plan.partitions
        response = PartitionData(error_code=code, high_watermark=5, log_start_offset=0)
        return len(plan.included([(fetch, response)]))

    results = [tell(epoch, code) for epoch, code in enumerate([0, 0, 6, 6, 0, 0], 1)]
    assert results == [1, 0, 1, 1, 1, 0]

"""The pure part of a leader: who is in sync, and how far records are safe."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.replication.isr import IsrMachine


def machine(*, isr: tuple[int, ...] = (1, 2, 3), high_watermark: int = 0) -> IsrMachine:
    return IsrMachine(1, replicas=(1, 2, 3), isr=isr, high_watermark=high_watermark, now=0.0)


def fetch(leader: IsrMachine, replica: int, offset: int, end: int, now: float = 1.0) -> bool:
    return leader.fetched(
        replica, offset=offset, log_start_offset=0, leader_end_offset=end, now=now
    )


def test_alone_everything_is_committed() -> None:
    """The only replica commits what it writes, whatever min.insync.replicas says."""
    leader = IsrMachine(1, replicas=(1,), isr=(1,), high_watermark=0, now=0.0)
    assert leader.advance(7, min_insync_replicas=2)
    assert leader.high_watermark == 7


def test_the_slowest_member_decides() -> None:
    """The high watermark is the smallest end in the ISR."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    fetch(leader, 3, 3, 9)
    assert leader.advance(9, 1)
    assert leader.high_watermark == 3


def test_a_follower_that_was_never_heard_of_holds_it() -> None:
    """Its position is unknown, so nothing is committed."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    assert not leader.advance(9, 1)
    assert leader.high_watermark == 0


def test_who_is_not_in_sync_does_not_count() -> None:
    """A replica outside the ISR may lag."""
    leader = machine(isr=(1, 2))
    fetch(leader, 2, 5, 9)
    assert leader.advance(9, 1)
    assert leader.high_watermark == 5


def test_who_is_about_to_join_counts_already() -> None:
    """Else a confirmed member could miss a committed record."""
    leader = machine(isr=(1, 2))
    fetch(leader, 2, 9, 9)
    fetch(leader, 3, 6, 9)
    leader.joining = frozenset({3})
    leader.advance(9, 1)
    assert leader.high_watermark == 6


def test_it_stays_while_too_few_are_in_sync() -> None:
    """Below min.insync.replicas nothing new is shown (KIP-966)."""
    leader = machine(isr=(1,), high_watermark=4)
    assert not leader.advance(9, 2)
    assert leader.high_watermark == 4
    assert leader.advance(9, 1)


def test_the_minimum_is_at_most_the_number_of_replicas() -> None:
    """min.insync.replicas above the replication factor does not stop a topic for good."""
    leader = IsrMachine(1, replicas=(1, 2), isr=(1, 2), high_watermark=0, now=0.0)
    assert leader.effective_min_isr(5) == 2
    assert leader.has_enough_replicas(5)


def test_a_stranger_is_not_listened_to() -> None:
    """Only replicas have positions."""
    assert not fetch(machine(), 9, 5, 9)


def test_who_has_caught_up_joins() -> None:
    """A follower joins when it holds all committed records, also those of the new epoch."""
    leader = machine(isr=(1, 2), high_watermark=4)
    fetch(leader, 3, 4, 9)
    assert leader.replicas_to_join(epoch_start_offset=0) == {3}
    assert leader.replicas_to_join(epoch_start_offset=5) == frozenset()


def test_who_lags_is_dropped() -> None:
    """Without the leader's end for replica.lag.time.max.ms a member is out."""
    leader = machine()
    fetch(leader, 2, 9, 9, now=100.0)
    fetch(leader, 3, 9, 9, now=85.0)
    assert leader.replicas_to_drop(9, now=200.0, lag_seconds=30) == frozenset()
    assert leader.replicas_to_drop(12, now=110.0, lag_seconds=30) == frozenset()
    assert leader.replicas_to_drop(12, now=120.0, lag_seconds=30) == {3}
    assert leader.replicas_to_drop(12, now=131.0, lag_seconds=30) == {2, 3}


def test_who_reads_steadily_behind_a_busy_leader_stays() -> None:
    """It is caught up if a fetch asks for what was the leader's end at the fetch before."""
    leader = machine()
    fetch(leader, 2, 5, 9, now=10.0)
    fetch(leader, 2, 9, 15, now=40.0)
    fetch(leader, 2, 15, 21, now=70.0)
    assert 2 not in leader.replicas_to_drop(21, now=69.0, lag_seconds=30)


def test_an_assignment_keeps_positions() -> None:
    """A changed ISR within an epoch forgets nothing that is known."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    leader.assign((1, 2, 4), (1, 2))
    assert leader.followers[2].log_end_offset == 5
    assert set(leader.followers) == {2, 4}
    assert leader.advance(9, 1)


def test_the_low_watermark_is_the_smallest_start() -> None:
    """DeleteRecords waits for every replica."""
    leader = machine()
    leader.fetched(2, offset=5, log_start_offset=3, leader_end_offset=9, now=1.0)
    leader.fetched(3, offset=5, log_start_offset=4, leader_end_offset=9, now=1.0)
    assert leader.smallest_log_start_offset(6) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from([2, 3]),
            st.integers(0, 50),
            st.integers(0, 50),
            st.sets(st.sampled_from([2, 3])),
            st.integers(1, 4),
        ),
        max_size=30,
    )
)
def test_the_high_watermark_never_goes_back_nor_beyond_the_isr(
    steps: list[tuple[int, int, int, set[int], int]],
) -> None:
    """Whatever comes: it only grows, and only to what every member of the moment has."""
    leader = machine()
    end = 0
    for replica, offset, grown, members, minimum in steps:
        end = max(end, grown)
        leader.assign((1, 2, 3), {1, *members})
        fetch(leader, replica, min(offset, end), end)
        before = leader.high_watermark
        moved = leader.advance(end, minimum)
        assert leader.high_watermark >= before
        if moved:
            assert len(leader.isr) >= min(minimum, 3)
            ends = [leader.followers[member].log_end_offset for member in members]
            assert leader.high_watermark <= min([end, *ends])

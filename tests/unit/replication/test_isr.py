"""The pure part of a leader: the in-sync replicas, and the high watermark."""

from ottla.replication.isr import IsrMachine


def machine(*, isr: tuple[int, ...] = (1, 2, 3), high_watermark: int = 0) -> IsrMachine:
    return IsrMachine(1, replicas=(1, 2, 3), isr=isr, high_watermark=high_watermark, now=0.0)


def fetch(leader: IsrMachine, replica: int, offset: int, end: int, now: float = 1.0) -> bool:
    return leader.fetched(
        replica, offset=offset, log_start_offset=0, leader_end_offset=end, now=now
    )


def test_single_replica_commits_everything() -> None:
    """A single replica commits its appends, whatever min.insync.replicas is."""
    leader = IsrMachine(1, replicas=(1,), isr=(1,), high_watermark=0, now=0.0)
    assert leader.advance(7, min_insync_replicas=2)
    assert leader.high_watermark == 7


def test_slowest_member_sets_the_high_watermark() -> None:
    """The high watermark is the smallest log end in the ISR."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    fetch(leader, 3, 3, 9)
    assert leader.advance(9, 1)
    assert leader.high_watermark == 3


def test_follower_without_a_position_blocks_the_high_watermark() -> None:
    """If a follower's position is unknown, nothing is committed."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    assert not leader.advance(9, 1)
    assert leader.high_watermark == 0


def test_out_of_sync_replica_does_not_count() -> None:
    """A replica outside the ISR may lag."""
    leader = machine(isr=(1, 2))
    fetch(leader, 2, 5, 9)
    assert leader.advance(9, 1)
    assert leader.high_watermark == 5


def test_joining_replica_counts_already() -> None:
    """A joining replica counts for the high watermark; otherwise a confirmed member could lack a
    committed record.
    """
    leader = machine(isr=(1, 2))
    fetch(leader, 2, 9, 9)
    fetch(leader, 3, 6, 9)
    leader.joining = frozenset({3})
    leader.advance(9, 1)
    assert leader.high_watermark == 6


def test_high_watermark_does_not_advance_below_the_minimum_isr() -> None:
    """Below min.insync.replicas the high watermark does not advance (KIP-966)."""
    leader = machine(isr=(1,), high_watermark=4)
    assert not leader.advance(9, 2)
    assert leader.high_watermark == 4
    assert leader.advance(9, 1)


def test_the_minimum_is_at_most_the_number_of_replicas() -> None:
    """A min.insync.replicas above the replication factor does not block a topic forever."""
    leader = IsrMachine(1, replicas=(1, 2), isr=(1, 2), high_watermark=0, now=0.0)
    assert leader.effective_min_isr(5) == 2
    assert leader.has_enough_replicas(5)


def test_leader_is_deserted_when_no_member_fetches() -> None:
    """One member that fetches is enough; a replica outside of the ISR does not count."""
    leader = machine(isr=(1, 2))
    fetch(leader, 3, 0, 0, now=10.0)
    assert leader.is_deserted(now=10.0)
    fetch(leader, 2, 0, 0, now=10.0)
    assert not leader.is_deserted(now=10.5)
    assert leader.is_deserted(now=11.5)
    assert not machine(isr=(1,)).is_deserted(now=10.0)


def test_fetch_of_another_broker_is_ignored() -> None:
    """Fetches of brokers without a replica are ignored."""
    assert not fetch(machine(), 9, 5, 9)


def test_caught_up_follower_joins() -> None:
    """A follower joins when it has all committed records, including the records of the new epoch."""
    leader = machine(isr=(1, 2), high_watermark=4)
    fetch(leader, 3, 4, 9)
    assert leader.replicas_to_join(epoch_start_offset=0) == {3}
    assert leader.replicas_to_join(epoch_start_offset=5) == frozenset()


def test_lagging_follower_leaves_the_isr() -> None:
    """A member leaves the ISR if it does not reach the leader's end for replica.lag.time.max.ms."""
    leader = machine()
    fetch(leader, 2, 9, 9, now=100.0)
    fetch(leader, 3, 9, 9, now=85.0)
    assert leader.replicas_to_drop(9, now=200.0, lag_seconds=30) == frozenset()
    assert leader.replicas_to_drop(12, now=110.0, lag_seconds=30) == frozenset()
    assert leader.replicas_to_drop(12, now=120.0, lag_seconds=30) == {3}
    assert leader.replicas_to_drop(12, now=131.0, lag_seconds=30) == {2, 3}


def test_follower_shortly_behind_a_busy_leader_stays() -> None:
    """A follower is caught up if a fetch reaches the end that the leader's log had at the previous
    fetch.
    """
    leader = machine()
    fetch(leader, 2, 5, 9, now=10.0)
    fetch(leader, 2, 9, 15, now=40.0)
    fetch(leader, 2, 15, 21, now=70.0)
    assert 2 not in leader.replicas_to_drop(21, now=69.0, lag_seconds=30)


def test_an_assignment_keeps_positions() -> None:
    """A changed ISR within an epoch keeps all known positions."""
    leader = machine()
    fetch(leader, 2, 5, 9)
    leader.assign((1, 2, 4), (1, 2))
    assert leader.followers[2].log_end_offset == 5
    assert set(leader.followers) == {2, 4}
    assert leader.advance(9, 1)


def test_the_low_watermark_is_the_smallest_start_of_the_live_replicas() -> None:
    """DeleteRecords waits for all replicas, but not for the broker that is down."""
    leader = machine()
    leader.fetched(2, offset=5, log_start_offset=2, leader_end_offset=5, now=0.0)
    assert leader.low_watermark(4, lambda replica: True) == -1
    assert leader.low_watermark(4, lambda replica: replica != 3) == 2
    assert leader.low_watermark(1, lambda replica: replica != 3) == 1

"""Leader election: tables of assignment, ISR, live replicas and the expected leader."""

import pytest

from ottla.cluster import election
from ottla.cluster.image import LeaderAndIsr


def state(leader: int, *isr: int) -> LeaderAndIsr:
    """Return a partition in its eighth leader epoch."""
    return LeaderAndIsr(leader=leader, leader_epoch=7, isr=isr, partition_epoch=3)


@pytest.mark.parametrize(
    ("isr", "live", "leader", "isr_after"),
    [
        ((1, 2, 3), {2, 3}, 2, (2, 3)),
        ((3, 2, 1), {2, 3}, 2, (3, 2)),
        ((1, 3), {2, 3}, 3, (3,)),
        ((1,), {2, 3}, None, None),
        ((1, 2, 3), set(), None, None),
    ],
)
def test_first_live_replica_in_sync_becomes_leader(
    isr: tuple[int, ...], live: set[int], leader: int | None, isr_after: tuple[int, ...] | None
) -> None:
    """The order is the assignment's, dead replicas leave the ISR, and none outside of the ISR is
    elected.
    """
    after = election.elect_for_offline((1, 2, 3), state(1, *isr), live)
    if leader is None:
        assert after is None
    else:
        assert after == LeaderAndIsr(leader, 8, isr_after or (), partition_epoch=3)


def test_unclean_election_elects_any_live_replica_and_marks_it() -> None:
    """The partition stays writable although records may be lost, and its state is recovering."""
    after = election.elect_for_offline((1, 2, 3), state(1, 1), {3, 2}, allow_unclean=True)
    assert after == LeaderAndIsr(2, 8, (2,), partition_epoch=3, is_recovering=True)


def test_unclean_election_still_prefers_a_replica_in_sync() -> None:
    """No record is lost as long as a member of the ISR is alive."""
    after = election.elect_for_offline((1, 2, 3), state(1, 1, 3), {2, 3}, allow_unclean=True)
    assert after == LeaderAndIsr(3, 8, (3,), partition_epoch=3)


@pytest.mark.parametrize(
    ("isr", "live", "is_elected"),
    [((1, 2), {1, 2}, True), ((2,), {1, 2}, False), ((1, 2), {2}, False)],
)
def test_preferred_replica_is_elected_only_alive_and_in_sync(
    isr: tuple[int, ...], live: set[int], is_elected: bool
) -> None:
    """A preferred election never loses a record, and keeps the ISR."""
    after = election.elect_preferred((1, 2), state(2, *isr), live)
    assert after == (LeaderAndIsr(1, 8, isr, partition_epoch=3) if is_elected else None)


def test_shutdown_moves_leadership_and_shrinks_the_isr() -> None:
    """A broker that stops leaves the ISR; the last member in sync keeps the leadership."""
    after = election.elect_for_shutdown((1, 2, 3), state(1, 1, 2, 3), {1, 2, 3}, {1})
    assert after == LeaderAndIsr(2, 8, (2, 3), partition_epoch=3)
    assert election.elect_for_shutdown((1, 2), state(1, 1), {1, 2}, {1}) is None


def test_new_partition_starts_with_its_live_replicas() -> None:
    """The first live replica of the assignment becomes the leader in epoch 0."""
    assert election.initial_state((3, 1, 2), {1, 2}) == LeaderAndIsr(1, 0, (1, 2))
    assert election.initial_state((3,), {1, 2}) is None

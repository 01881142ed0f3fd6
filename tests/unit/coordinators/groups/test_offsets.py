"""The store of committed offsets."""

import pytest

from ottla.coordinators.groups.offsets import CommittedOffset, OffsetStore

P0, P1 = ("t", 0), ("t", 1)


def test_latest_commit_replaces_earlier_ones():
    """A commit replaces the previous one; a group without offsets can be removed."""
    store = OffsetStore()
    store.apply("g", P0, CommittedOffset(5))
    store.apply("g", P0, CommittedOffset(7))
    store.apply("g", P1, CommittedOffset(1))
    assert store.of_group("g") == {P0: CommittedOffset(7), P1: CommittedOffset(1)}
    store.remove("g", P0)
    store.remove("g", P1)
    store.remove("g", P1)
    assert store.of_group("g") == {}
    store.end_group("g")
    assert not store.has_group("g")
    assert store.groups() == []


def test_offset_of_an_open_transaction_is_unstable_until_it_ends():
    """The offset is visible from the commit of the transaction on, and never after an abort."""
    store = OffsetStore()
    store.apply("g", P0, CommittedOffset(5))
    store.apply_open(7, "g", P0, CommittedOffset(9))
    store.apply_open(8, "g", P1, CommittedOffset(3))
    assert store.is_unstable("g", P0)
    assert store.of_group("g") == {P0: CommittedOffset(5)}
    store.end_transaction(7, is_committed=True)
    store.end_transaction(8, is_committed=False)
    store.end_transaction(9, is_committed=True)
    assert not store.is_unstable("g", P0)
    assert store.of_group("g") == {P0: CommittedOffset(9)}


@pytest.mark.parametrize("is_committed", [True, False])
def test_plain_commit_wins_over_a_transaction_that_began_before(is_committed):
    """The older offset of a transaction stays unstable until its marker, and is then dropped."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(9))
    store.apply("g", P0, CommittedOffset(20))
    assert store.of_group("g") == {P0: CommittedOffset(20)}
    assert store.is_unstable("g", P0)
    store.end_transaction(7, is_committed=is_committed)
    assert store.of_group("g") == {P0: CommittedOffset(20)}
    assert not store.is_unstable("g", P0)


def test_offset_of_a_transaction_wins_over_a_plain_commit_that_was_written_before():
    """A transaction that commits an offset again after a plain commit replaces the plain one."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(9))
    store.apply("g", P0, CommittedOffset(20))
    store.apply_open(7, "g", P0, CommittedOffset(30))
    store.end_transaction(7, is_committed=True)
    assert store.of_group("g") == {P0: CommittedOffset(30)}


def test_offset_written_later_wins_in_any_order_of_transaction_ends():
    """Two open transactions commit 100, then 200; the one with 200 ends first, and 200 stays."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(100))
    store.apply_open(8, "g", P0, CommittedOffset(200))
    store.end_transaction(8, is_committed=True)
    assert store.of_group("g") == {P0: CommittedOffset(200)}
    assert store.is_unstable("g", P0)
    store.end_transaction(7, is_committed=True)
    assert store.of_group("g") == {P0: CommittedOffset(200)}
    assert not store.is_unstable("g", P0)


def test_offset_written_later_wins_among_several_transactions():
    """An aborted transaction has no effect, but a later commit of an open transaction has."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(100))
    store.apply_open(8, "g", P0, CommittedOffset(200))
    store.apply_open(9, "g", P0, CommittedOffset(300))
    store.apply_open(7, "g", P1, CommittedOffset(10))
    store.apply_open(8, "g", P1, CommittedOffset(20))
    store.apply_open(7, "g", P1, CommittedOffset(30))
    store.end_transaction(9, is_committed=False)
    store.end_transaction(8, is_committed=True)
    store.end_transaction(7, is_committed=True)
    assert store.of_group("g") == {P0: CommittedOffset(200), P1: CommittedOffset(30)}


def test_offset_committed_after_a_tombstone_is_used():
    """A tombstone also resets the log position of the offset that it removes."""
    store = OffsetStore()
    store.apply_open(7, "g", P1, CommittedOffset(1))
    store.apply_open(8, "g", P0, CommittedOffset(200))
    store.end_transaction(8, is_committed=True)
    store.remove("g", P0)
    store.apply_open(9, "g", P0, CommittedOffset(3))
    store.end_transaction(9, is_committed=True)
    assert store.of_group("g") == {P0: CommittedOffset(3)}


def test_tombstone_removes_offsets_of_open_transactions():
    """A deleted group is not restored when its transaction commits."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(9))
    assert store.has_open("g")
    assert store.groups() == ["g"]
    assert store.partitions("g") == [P0]
    store.remove("g", P0)
    store.end_group("g")
    store.end_transaction(7, is_committed=True)
    assert not store.has_group("g")


def test_group_ends_when_it_is_deleted_and_has_no_offsets():
    """Neither the removal of its last offset nor the end of a transaction ends a group."""
    store = OffsetStore()
    store.apply_open(7, "g", P0, CommittedOffset(9))
    store.end_group("g")
    store.end_transaction(7, is_committed=False)
    assert store.groups() == ["g"]
    store.apply("g", P0, CommittedOffset(9))
    store.end_group("g")
    assert store.groups() == ["g"]
    store.remove("g", P0)
    assert store.groups() == ["g"]
    store.end_group("g")
    assert store.groups() == []


def test_topics_are_found_in_every_group():
    """Deleting a topic finds the offsets that are stored for it in all groups."""
    store = OffsetStore()
    store.apply("a", ("gone", 0), CommittedOffset(1))
    store.apply("a", ("kept", 0), CommittedOffset(1))
    store.apply_open(7, "b", ("gone", 1), CommittedOffset(1))
    names = set(store.partitions_of_topics(frozenset({"gone"})))
    assert names == {("a", ("gone", 0)), ("b", ("gone", 1))}

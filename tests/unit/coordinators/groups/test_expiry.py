"""When committed offsets are old enough to go."""

import pytest

from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.groups.expiry import expired
from ottla.coordinators.groups.offsets import CommittedOffset

READ, UNREAD = ("read", 0), ("unread", 0)
OFFSETS = {
    READ: CommittedOffset(1, commit_timestamp_ms=1000),
    UNREAD: CommittedOffset(1, commit_timestamp_ms=1000),
}


def expired_at(now_ms, group, offsets=OFFSETS):
    return set(expired(group, offsets, now_ms=now_ms, retention_ms=100))


def consumers(state, since_ms=-1, topics=frozenset({"read"})):
    return Group(
        "g",
        state=state,
        state_since_ms=since_ms,
        protocol_type="consumer",
        subscribed_topics=topics,
    )


def test_empty_group_keeps_offsets_for_the_retention_time_since_it_became_empty():
    """The time of the commits does not matter (KIP-211)."""
    group = consumers(GroupState.EMPTY, since_ms=5000, topics=frozenset())
    assert expired_at(5099, group) == set()
    assert expired_at(5100, group) == {READ, UNREAD}


def test_empty_group_of_an_old_record_counts_from_the_commits():
    """Records before version 2 do not say since when the group is empty."""
    group = consumers(GroupState.EMPTY, topics=frozenset())
    assert expired_at(1099, group) == set()
    assert expired_at(1100, group) == {READ, UNREAD}


def test_stable_group_loses_only_what_nobody_reads_any_more():
    """Topics that a member still reads keep their offsets for ever."""
    group = consumers(GroupState.STABLE, since_ms=5000)
    assert expired_at(10**9, group) == {UNREAD}
    assert expired_at(1099, group) == set()


@pytest.mark.parametrize("state", [GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE])
def test_rebalancing_group_keeps_everything(state):
    """Who reads what is not known before the rebalance ends."""
    assert expired_at(10**9, consumers(state)) == set()


def test_stable_group_that_is_not_understood_keeps_everything():
    """Members that are no Kafka consumers, or speak in riddles, may need any offset."""
    assert expired_at(10**9, consumers(GroupState.STABLE, topics=None)) == set()
    connect = Group("g", state=GroupState.STABLE, protocol_type="connect")
    assert expired_at(10**9, connect) == set()


def test_offsets_without_a_group_count_from_their_commits():
    """A client that only stores offsets loses each one in its own time."""
    offsets = {READ: CommittedOffset(1, commit_timestamp_ms=1000),
               UNREAD: CommittedOffset(1, commit_timestamp_ms=2000)}  # fmt: skip
    assert expired_at(1100, Group("g"), offsets) == {READ}


def test_commit_that_brought_its_own_expiry_has_it():
    """Versions 2 to 4 of OffsetCommit could say how long; that holds whatever the option says."""
    offsets = {READ: CommittedOffset(1, commit_timestamp_ms=1000, expire_timestamp_ms=9000)}
    assert expired_at(8999, Group("g"), offsets) == set()
    assert expired_at(9000, Group("g"), offsets) == {READ}

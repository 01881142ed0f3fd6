"""The expiration of committed offsets."""

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


def test_offsets_of_an_empty_group_expire_after_it_became_empty():
    """The retention time starts when the group becomes empty, not with the commits (KIP-211)."""
    group = consumers(GroupState.EMPTY, since_ms=5000, topics=frozenset())
    assert expired_at(5099, group) == set()
    assert expired_at(5100, group) == {READ, UNREAD}


def test_offsets_of_an_empty_group_with_an_old_record_expire_after_the_commits():
    """Records before version 2 do not contain the time at which the group became empty."""
    group = consumers(GroupState.EMPTY, topics=frozenset())
    assert expired_at(1099, group) == set()
    assert expired_at(1100, group) == {READ, UNREAD}


def test_stable_group_loses_only_offsets_without_subscription():
    """Offsets of subscribed topics never expire."""
    group = consumers(GroupState.STABLE, since_ms=5000)
    assert expired_at(10**9, group) == {UNREAD}
    assert expired_at(1099, group) == set()


@pytest.mark.parametrize("state", [GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE])
def test_rebalancing_group_keeps_all_offsets(state):
    """The subscriptions are unknown until the rebalance ends."""
    assert expired_at(10**9, consumers(state)) == set()


def test_stable_group_with_unknown_subscriptions_keeps_all_offsets():
    """Members of other protocol types, or with unreadable subscriptions, may need any offset."""
    assert expired_at(10**9, consumers(GroupState.STABLE, topics=None)) == set()
    connect = Group("g", state=GroupState.STABLE, protocol_type="connect")
    assert expired_at(10**9, connect) == set()


def test_offsets_without_a_group_expire_after_their_commits():
    """Each offset of a client that only stores offsets expires on its own."""
    offsets = {READ: CommittedOffset(1, commit_timestamp_ms=1000),
               UNREAD: CommittedOffset(1, commit_timestamp_ms=2000)}  # fmt: skip
    assert expired_at(1100, Group("g"), offsets) == {READ}


def test_commit_with_an_expiration_time_keeps_it():
    """OffsetCommit versions 2 to 4 can contain a retention time, which overrides the option."""
    offsets = {READ: CommittedOffset(1, commit_timestamp_ms=1000, expire_timestamp_ms=9000)}
    assert expired_at(8999, Group("g"), offsets) == set()
    assert expired_at(9000, Group("g"), offsets) == {READ}

"""The thread of a group member against a real broker: the events that its owner sees."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from ottla.client.admin.groups import describe_group, remove_members
from ottla.client.group.assignors import RangeAssignor
from ottla.client.group.background import Cause, GroupThread, Joined, Lost, Rejoin
from ottla.client.group.member import GroupSettings
from ottla.testing import Cluster

_WAIT_S = 30.0
Members = Callable[[str], GroupThread]


@pytest.fixture
def members(ottla_cluster: Cluster) -> Iterator[Members]:
    """Start members of group "g", each with a client id; the topic `t` has three partitions."""
    ottla_cluster.create_topic("t", partitions=3)
    settings = GroupSettings(
        ottla_cluster.bootstrap, "", "g", None, session_s=60, rebalance_s=60, heartbeat_s=0.1,
        refresh_s=60, creates_topics=False,
    )  # fmt: skip
    with ExitStack() as stack:

        def start(client_id: str) -> GroupThread:
            thread = GroupThread(settings._replace(client_id=client_id), [RangeAssignor()])
            return stack.enter_context(closing(thread))

        yield start


def _next(member: GroupThread) -> object:
    """Return the next event of a member that is being polled."""
    deadline = time.monotonic() + _WAIT_S
    while not member.events:
        assert time.monotonic() < deadline, "no event"
        member.polled()
    return member.events.popleft()


def _remove(cluster: Cluster, client_id: str) -> None:
    with cluster.admin() as brokers:
        group = describe_group(brokers, "g")
        (member,) = (row for row in group.members if row.client_id == client_id)
        remove_members(brokers, replace(group, members=(member,)))


def _rebalancing(members: Members) -> GroupThread:
    """Return a member of a group whose other member does not join again when a third one comes."""
    first, silent = members("first"), members("silent")
    first.join(("t",))
    assert isinstance(_next(first), Joined)
    silent.join(("t",))
    assert isinstance(_next(first), Rejoin)
    first.join(("t",), is_owner=True)
    assert isinstance(_next(first), Joined)
    assert isinstance(_next(silent), Joined)
    members("third").join(("t",))
    assert isinstance(_next(first), Rejoin)
    return first


def test_an_owner_that_is_removed_while_it_joins_has_lost_its_partitions(
    ottla_cluster: Cluster, members: Members
) -> None:
    """It does not become a new member in silence: others may have its partitions."""
    first = _rebalancing(members)
    first.join(("t",), is_owner=True)
    _remove(ottla_cluster, "first")
    assert _next(first) == Lost(Cause.REMOVED)
    # It has no partitions to lose any more.
    first.join(("t",))
    _remove(ottla_cluster, "silent")
    assert isinstance(_next(first), Joined)

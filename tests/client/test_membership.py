"""The life of a member apart from its polls: heartbeats, and how a stuck application is noticed."""

from collections.abc import Iterator

import pytest

from ottla.client import AdminClient, Consumer
from ottla.testing import Cluster

SESSION_MS = 800


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A broker that allows short sessions."""
    with Cluster(options={"group.min.session.timeout.ms": "500"}) as running:
        yield running


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_heartbeats_do_not_depend_on_the_application(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """A member that is busy for twice its session timeout stays in the group and can commit."""
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": 100,
        "enable_auto_commit": False,
        "partition_assignment_strategy": strategy,
    }
    with (
        Consumer(topic, group_id=topic, **settings) as busy,
        Consumer(bootstrap_servers=cluster.bootstrap) as other,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        while len(busy.assignment) < 3:
            busy.poll(0.1)
        # The application works: here it waits in another consumer's poll, which returns nothing.
        other.assign([(topic, 0)])
        assert other.poll(2 * SESSION_MS / 1000) == []
        (member,) = admin.describe_group(topic).members
        assert len(member.assignment) == 3
        assert busy.commit({(topic, 0): 0})
        assert busy.departure is None

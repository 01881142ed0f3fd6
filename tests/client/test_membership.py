"""The life of a member apart from its polls: heartbeats, and how a stuck application is noticed."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.client import AdminClient, Consumer, Producer, TopicPartition, transport
from ottla.client.errors import ClientError, CommitFailed, Fenced
from ottla.testing import Cluster

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "sticky"])
def test_commit_after_a_late_poll_has_the_reason(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """The error names max.poll.interval.ms and the time, before any other call of `poll`."""
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "session_timeout_ms": SESSION_MS,
        "max_poll_interval_ms": SESSION_MS,
        "heartbeat_interval_ms": 100,
        "enable_auto_commit": False,
        "partition_assignment_strategy": strategy,
    }
    with (
        Consumer(topic, group_id=topic, **settings) as busy,
        Consumer(bootstrap_servers=cluster.bootstrap) as other,
    ):
        while len(busy.assignment) < 3:
            busy.poll(0.1)
        # The application works: here it waits in another consumer's poll, which returns nothing.
        other.assign([(topic, 0)])
        assert other.poll(2 * SESSION_MS / 1000) == []
        with pytest.raises(CommitFailed, match=r"poll was not called for .*max\.poll") as caught:
            busy.commit({(topic, 0): 0})
        reason = busy.departure
        busy.poll(0.1)
        for text in (caught.value, reason, busy.departure):
            found = re.search(r"poll was not called for (\d+\.\d) s", str(text))
            # A busy machine needs longer to return from the other consumer's poll.
            assert found is not None
            assert 2 * SESSION_MS / 1000 <= float(found[1]) < 30


class RevokingConsumer:
    """librdkafka's consumer, in which a rebalance follows the first record that `poll` returns."""

    def __init__(self, inner: Any, revoke: Callable[[], None]) -> None:
        self._inner = inner
        self._revoke = revoke
        self._has_returned = False

    def __getattr__(self, name: str) -> Any:
        """Return librdkafka's method."""
        return getattr(self._inner, name)

    def poll(self, timeout: float) -> Any:
        """Return a record, and remember that there was one."""
        message = self._inner.poll(timeout)
        self._has_returned = message is not None and message.error() is None
        return message

    def consume(self, count: int, timeout: float) -> list[Any]:
        """Revoke the assignment after a record, or return no records."""
        if self._has_returned:
            self._revoke()
            self._inner.unassign()
        return []


def test_a_record_that_a_rebalance_interrupts_is_left_to_the_next_owner(
    cluster: Cluster, topic: str
) -> None:
    """The consumer does not return it, and commits its offset as the next one."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for _ in range(3):
            producer.send(topic, b"value", partition=0)
    settings = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    with Consumer(topic, group_id=topic, **settings) as consumer:
        while len(consumer.assignment) < 3:
            assert consumer.poll(0, max_records=1) == []
        inner, membership = consumer._consumer, consumer._membership
        rows = transport.partitions(dict.fromkeys(consumer.assignment, transport.STORED))
        consumer._consumer = RevokingConsumer(inner, lambda: membership._revoked(inner, rows))
        while consumer.assignment:
            assert consumer.poll(0.1) == []
        assert consumer.committed([(topic, 0)])[TopicPartition(topic, 0)].offset == 0
        consumer._consumer = inner


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "sticky"])
def test_fenced_member_raises_in_every_poll(cluster: Cluster, topic: str, strategy: str) -> None:
    """It never returns to its group: an empty list would look like a topic without records."""
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "group_id": topic,
        "group_instance_id": "one",
        "heartbeat_interval_ms": 100,
        "partition_assignment_strategy": strategy,
    }
    with Consumer(topic, **settings) as fenced, Consumer(**settings) as other:
        while not fenced.assignment:
            fenced.poll(0.1)
        other.subscribe(topic)
        while not other.assignment:
            other.poll(0.1)
        with pytest.raises(Fenced, match=r"group\.instance\.id 'one'"):
            while True:
                fenced.poll(0.1)
        for _ in range(3):
            with pytest.raises(Fenced, match=r"group\.instance\.id 'one'"):
                fenced.poll(0.1)
        if strategy == "sticky":
            # It has lost its partitions already.
            assert fenced.commit({(topic, 0): 0}) == {}
        else:
            with pytest.raises(CommitFailed, match=r"group\.instance\.id 'one'"):
                fenced.commit({(topic, 0): 0})


def test_fatal_error_is_raised_by_every_poll(cluster: Cluster, topic: str) -> None:
    """The consumer never recovers, even if the other member with its group.instance.id leaves."""
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "group_id": topic,
        "group_protocol": "consumer",
        "group_instance_id": "one",
    }
    with Consumer(**settings) as second:
        with Consumer(topic, **settings) as first:
            while not first.assignment:
                first.poll(0.1)
            second.subscribe(topic)
            with pytest.raises(ClientError, match="still used by another member"):
                while True:
                    second.poll(0.1)
        for _ in range(3):
            with pytest.raises(ClientError, match="still used by another member"):
                second.poll(0.1)

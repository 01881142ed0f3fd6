"""A consumer that has waited for partitions reports the reason."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from ottla.client import AdminClient, Consumer
from ottla.client.brokers import Brokers
from ottla.client.reach import unassigned
from ottla.testing import Cluster

WITHIN_S = 10.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unassigned, "_WAIT_S", 0.3)


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture(name="topic")
def _topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("_", "-")
    cluster.create_topic(name)
    return str(name)


@pytest.fixture(scope="module", name="without_coordinator")
def _without_coordinator() -> Iterator[Cluster]:
    options = {"offsets.topic.replication.factor": "3"}
    with Cluster(options=options) as running:
        running.create_topic("orders")
        yield running


def reason(caplog: pytest.LogCaptureFixture, consumers: Sequence[Consumer]) -> str:
    """Poll the first consumer until there is a line about the reason, and return that."""
    deadline = time.monotonic() + WITHIN_S
    while not (lines := [row for row in caplog.messages if "has waited 0.3 s" in row]):
        assert time.monotonic() < deadline, caplog.messages
        consumers[0].poll(0.05)
    return lines[0]


def wait_for(consumer: Consumer, condition: Callable[[Consumer], bool]) -> None:
    """Poll a consumer until a condition holds."""
    deadline = time.monotonic() + WITHIN_S
    while not condition(consumer):
        assert time.monotonic() < deadline
        consumer.poll(0.05)


def test_missing_topic_is_named(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The name is misspelt, or the topic was never created."""
    with Consumer("ordres", bootstrap_servers=cluster.bootstrap, group_id="missing") as consumer:
        text = reason(caplog, [consumer])
    assert text == (
        "the consumer has waited 0.3 s for partitions of ordres: there is no topic 'ordres': "
        "create it, or correct the name"
    )


def test_pattern_without_topic_is_named(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """No topic matches it."""
    with Consumer(bootstrap_servers=cluster.bootstrap, group_id="pattern") as consumer:
        consumer.subscribe(pattern="nothing-.*")
        assert "no topic of the cluster matches the pattern" in reason(caplog, [consumer])


def test_spare_member_is_explained(cluster: Cluster, topic: str) -> None:
    """A group has more members than partitions."""
    cluster.create_topic("single")
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    deadline = time.monotonic() + WITHIN_S
    with (
        Consumer("single", **settings) as first,
        Consumer("single", **settings) as second,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):

        def is_settled() -> bool:
            first.poll(0.05)
            second.poll(0.05)
            group = admin.describe_group(topic)
            return group.state == "Stable" and len(group.members) == 2

        while not is_settled() or not first.assignment | second.assignment:
            assert time.monotonic() < deadline
        members = admin.describe_group(topic).members
        spare = next(member.member_id for member in members if not member.assignment)
        with Brokers(cluster.bootstrap) as brokers:
            text = unassigned.reason_of(brokers, topic, ["single"], spare)
    assert "has 2 members for 1 partitions, and this one is a spare" in text


def test_member_that_delays_a_rebalance_is_named(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not poll while another one joins."""
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    with Consumer(topic, client_id="slow", **settings) as slow:
        wait_for(slow, lambda one: bool(one.assignment))
        with Consumer(topic, **settings) as second:
            text = reason(caplog, [second])
            wait_for(slow, lambda _: bool(second.poll(0) or second.assignment))
    assert "is rebalancing, and waits for its other members to call poll (slow on" in text


def test_missing_coordinator_is_explained(
    without_coordinator: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A cluster of one broker cannot create the topic of offsets with three replicas."""
    settings = {"bootstrap_servers": without_coordinator.bootstrap, "group_id": "g"}
    with Consumer("orders", **settings) as consumer:
        text = reason(caplog, [consumer])
    assert "group 'g' has no coordinator yet" in text
    assert "offsets.topic.replication.factor" in text


def test_assigned_consumer_reports_nothing(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The watch ends with the first assignment."""
    with Consumer(topic, bootstrap_servers=cluster.bootstrap, group_id=topic) as consumer:
        wait_for(consumer, lambda one: bool(one.assignment))
        consumer.poll(0.5)
    assert "has waited" not in caplog.text

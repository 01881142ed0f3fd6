"""One group with members of the Java client and of this client, both with the StickyAssignor."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client import AdminClient, Consumer, Producer
from ottla.testing.cluster import Cluster
from tests.compat import java
from tests.compat.test_consumer_protocol_java import Verifiable

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

STICKY = "org.apache.kafka.clients.consumer.StickyAssignor"
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
KAFKAS_DEFAULT = f"org.apache.kafka.clients.consumer.RangeAssignor,{COOPERATIVE}"
PARTITIONS = 12
HEARTBEAT_MS = 200


# The members decide, with the same assignors, whichever broker has the group.
_OF_OTTLA = "tests/compat/test_sticky_assignor.py::test_members_of_both_clients_share_and_keep"


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.nightly(_OF_OTTLA))])
def bootstrap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A broker of Ottla's, and one of Apache Kafka 4.3, with twelve partitions of ten records."""
    if request.param == "ottla":
        with Cluster() as running:
            fill(running.bootstrap)
            yield running.bootstrap
        return
    node = java.KafkaNode(tmp_path / "kafka", version="4.3.0")
    node.start()
    try:
        fill(node.bootstrap)
        yield node.bootstrap
    finally:
        node.stop()


def fill(bootstrap: str) -> None:
    """Write numbered records to all partitions in turn."""
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("t", partitions=PARTITIONS)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(120):
            producer.send("t", str(number).encode(), partition=number % PARTITIONS)


def java_member(bootstrap: str, folder: Path, assignor: str = STICKY) -> Verifiable:
    """Start a VerifiableConsumer."""
    # A member notices a rebalance at its next heartbeat, by default after up to three seconds.
    settings = folder / "consumer.properties"
    settings.write_text(f"heartbeat.interval.ms={HEARTBEAT_MS}\n")
    words = ("--assignment-strategy", assignor, "--command-config", str(settings))
    return Verifiable(bootstrap, folder, *words, protocol="classic")


def member(bootstrap: str, assignors: str = STICKY) -> Consumer:
    """Return a member of this client."""
    return Consumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=assignors,
    )


def shared(ours: Consumer, *others: Verifiable) -> list[int]:
    """Poll until all partitions are shared equally; return the values that were read here."""
    share = PARTITIONS // (len(others) + 1)
    values = []
    for _ in range(1200):
        values += [int(record.value) for record in ours.poll(0.05)]
        if len(ours.assignment) == share and all(other.share() == share for other in others):
            return values
    raise AssertionError([len(ours.assignment), *(other.share() for other in others)])


@pytest.mark.parametrize("leader", ["java", "ottla"])
def test_members_of_both_clients_share_and_keep(
    bootstrap: str, leader: str, tmp_path: Path
) -> None:
    """Under a leader of either client, each record is read once, and a member keeps its partitions."""
    values: list[int] = []
    others: list[Verifiable] = []
    if leader == "java":
        others.append(java_member(bootstrap, tmp_path))
        wait_for(others[0], PARTITIONS)
    ours = member(bootstrap)
    try:
        values += shared(ours, *others)
        if leader == "ottla":
            others.append(java_member(bootstrap, tmp_path))
            values += shared(ours, *others)
        before = ours.assignment
        others.append(java_member(bootstrap, tmp_path))
        values += shared(ours, *others)
        assert ours.assignment < before
        before = ours.assignment
        others[1].end()
        values += shared(ours, others[0])
        assert before < ours.assignment
        while len(values) + sum(len(other.values()) for other in others) < 120:
            values += [int(record.value) for record in ours.poll(0.05)]
    finally:
        ours.close()
        for other in others:
            other.end()
    everything = sorted(values + [value for other in others for value in other.values()])
    assert everything == list(range(120))


@pytest.mark.parametrize("leader", ["java", "ottla"])
def test_default_of_kafka_in_a_group_with_a_cooperative_java_member(
    leader: str, tmp_path: Path
) -> None:
    """The group uses the common assignor, and each record is read once."""
    with Cluster() as cluster:
        fill(cluster.bootstrap)
        values: list[int] = []
        if leader == "java":
            other = java_member(cluster.bootstrap, tmp_path, COOPERATIVE)
            wait_for(other, PARTITIONS)
        with member(cluster.bootstrap, KAFKAS_DEFAULT) as ours:
            if leader == "ottla":
                values += shared(ours)
                other = java_member(cluster.bootstrap, tmp_path, COOPERATIVE)
            try:
                values += shared(ours, other)
                while len(values) + len(other.values()) < 120:
                    values += [int(record.value) for record in ours.poll(0.05)]
            finally:
                other.end()
        assert sorted(values + other.values()) == list(range(120))


def wait_for(other: Verifiable, share: int) -> None:
    """Wait until a member has so many partitions."""
    for _ in range(1200):
        if other.share() == share:
            return
        with pytest.raises(subprocess.TimeoutExpired):
            other.process.wait(0.05)
    raise AssertionError(other.share())

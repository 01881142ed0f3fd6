"""Doctor: checks of a cluster that responds. Each fault is real."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.admin.cluster import Broker, ClusterDescription
from ottla.client.bootstrap import Address
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from ottla.tools.doctor import cluster, port
from ottla.tools.doctor.findings import Finding, State


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeouts."""
    monkeypatch.setattr(port, "PATIENCE_S", 0.5)


def examined(running: Cluster, *, may_write: bool = False) -> dict[str, Finding]:
    """Return the findings by check."""
    address = Address(running.host, running.port)
    return {finding.check: finding for finding in cluster.examine(address, may_write=may_write)}


def advertised(options: str) -> Finding:
    """Return the findings for a broker that advertises this address."""
    with Cluster(options={"advertised.listeners": f"PLAINTEXT://{options}"}) as running:
        finding = examined(running)["advertised address of broker 1"]
        assert str(running.port) in finding.remedy or finding.state is State.OK
    return finding


def test_healthy_cluster_has_no_remedies() -> None:
    """All checks are present and succeed."""
    with Cluster() as running:
        running.create_topic("t", partitions=3)
        findings = examined(running)
    assert {finding.state for finding in findings.values()} == {State.OK}
    assert findings.keys() == {
        "versions", "cluster", "controller", "advertised address of broker 1",
        "log directories of broker 1", "partitions", "time",
    }  # fmt: skip
    assert findings["partitions"].found.startswith("3,")


def test_unknown_advertised_name_is_reported() -> None:
    """A container advertises such a name outside of its network."""
    finding = advertised("container.invalid:9092")
    assert finding.state is State.FAIL
    assert "the broker advertises container.invalid:9092" in finding.found
    assert "advertised.listeners=PLAINTEXT://127.0.0.1:" in finding.remedy


def test_closed_advertised_port_is_reported() -> None:
    """A port that is not forwarded looks closed."""
    finding = advertised("127.0.0.1:1")
    assert finding.state is State.FAIL
    assert "the broker advertises 127.0.0.1:1, but nothing listens" in finding.found


def test_another_cluster_at_the_advertised_address_is_reported() -> None:
    """Clients would write to the wrong cluster."""
    with Cluster() as other:
        finding = advertised(f"127.0.0.1:{other.port}")
        assert other.cluster_id in finding.found
    assert finding.state is State.FAIL
    assert "another cluster answers" in finding.found


def test_another_name_of_the_same_cluster_is_accepted() -> None:
    """The advertised host is a name instead of an address."""
    with Cluster() as probe:
        number = probe.port
    with Cluster(
        options={
            "listeners": f"PLAINTEXT://127.0.0.1:{number}",
            "advertised.listeners": f"PLAINTEXT://localhost:{number}",
        }
    ) as running:
        finding = examined(running)["advertised address of broker 1"]
    assert (finding.state, finding.remedy) == (State.OK, "")
    assert "can be reached from here" in finding.found


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_advertised_localhost_is_reported(host: str) -> None:
    """A broker in a container sends its clients to their own machine."""
    seen_from = Address("192.0.2.7", 9092)
    broker = Broker(1, host, 9092, None)
    described = ClusterDescription("c", 1, (broker,))
    finding = cluster._advertised(Brokers(str(seen_from)), seen_from, broker, described)
    assert finding.state is State.FAIL
    assert "would connect to their own machine" in finding.found
    assert "advertised.listeners=PLAINTEXT://192.0.2.7:9092" in finding.remedy


def test_wildcard_address_cannot_be_advertised() -> None:
    """The address 0.0.0.0 is only for listening."""
    broker = Broker(1, "0.0.0.0", 9092, None)
    seen_from = Address("127.0.0.1", 9092)
    described = ClusterDescription("c", 1, (broker,))
    finding = cluster._advertised(Brokers(str(seen_from)), seen_from, broker, described)
    assert (finding.state, "not an address" in finding.found) == (State.FAIL, True)


def test_offline_log_directory_is_reported(tmp_path: Path) -> None:
    """The broker reports it, as it may run on another machine."""
    folders = f"{tmp_path}/a,{tmp_path}/b"
    with Cluster(options={"log.dirs": folders}, data=tmp_path) as running:
        running.create_topic("t", partitions=4)
        shutil.rmtree(tmp_path / "b")
        (tmp_path / "b").touch()
        running.create_topic("u", partitions=4)
        finding = examined(running)["log directories of broker 1"]
    assert finding.state is State.FAIL
    assert finding.found == f"1 of 2 offline: {tmp_path}/b"


def test_partitions_without_a_leader_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions with missing replicas are reported if each has a leader."""
    with Cluster() as running, running.admin() as brokers:
        running.create_topic("t", partitions=2)
        (topic,) = topics.list_topics(brokers)
        first, second = topic.partitions
        for changed, state, arguments in (
            (replace(first, leader=-1), State.FAIL, "1 of 2 have no leader: t-0"),
            (replace(first, replicas=(1, 2)), State.WARN, "1 of 2 are under-replicated: t-0"),
        ):
            listed = replace(topic, partitions=(changed, second))
            monkeypatch.setattr(cluster.topics, "list_topics", lambda _, listed=listed: [listed])
            finding = cluster._partitions(brokers)
            assert (finding.state, finding.found) == (state, arguments)


def test_clocks_are_compared_only_when_writing_is_allowed() -> None:
    """The topic for the comparison is deleted afterwards."""
    with Cluster() as running:
        assert "--write" in examined(running)["time"].found
        assert "agree" in examined(running, may_write=True)["time"].found
        assert running.topics() == []


def test_a_broker_may_learn_of_the_new_topic_after_its_creation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The comparison of clocks waits until a broker knows the topic that it has created."""
    known = Brokers.known_leaders
    unknown: list[str] = []

    def leaders(brokers: Brokers, topics: set[str], **options: Any) -> Any:
        if not unknown:
            unknown.extend(topics)
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return known(brokers, topics, **options)

    monkeypatch.setattr(Brokers, "known_leaders", leaders)
    with Cluster() as running:
        assert "agree" in examined(running, may_write=True)["time"].found
    assert [name.startswith("ottla-doctor-") for name in unknown] == [True]


@pytest.mark.parametrize(
    ("seconds", "state", "text"),
    [
        (120, State.FAIL, "ahead of"),
        (-3000, State.FAIL, "behind"),
        (10, State.WARN, "10.0 s ahead"),
    ],
)
def test_wrong_clock_is_reported(
    monkeypatch: pytest.MonkeyPatch, seconds: int, state: State, text: str
) -> None:
    """The finding has the direction and the size of the difference."""
    monkeypatch.setattr(
        RealClock, "time_ms", lambda self: time.time_ns() // 1_000_000 + seconds * 1000
    )
    with Cluster() as running:
        finding = examined(running, may_write=True)["time"]
    assert (finding.state, text in finding.found) == (state, True)
    assert "NTP" in finding.remedy

"""Apache Kafka's own tool moves a partition between brokers under a limit (KIP-73)."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from ottla.testing.cluster import Cluster
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    # Three runs of a JVM: nothing else shows that the tool sets and clears what the broker obeys.
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

RATE = 400_000
RECORDS = 120
VALUE = b"x" * 20_000
SECONDS = 0.8 * RECORDS * len(VALUE) / RATE
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Return two brokers that fetch little at a time."""
    options = {"replica.fetch.max.bytes": "100000"}
    with Cluster(brokers=2, data=tmp_path, options=options) as running:
        yield running


def options_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    resource = ConfigResource(kind, name)
    config = admin.describe_configs([resource])[resource].result(10)
    return {key: entry.value for key, entry in config.items() if not entry.is_default}


def test_kafkas_tool_throttles_a_move_and_removes_the_limit(two: Cluster, tmp_path: Path) -> None:
    """--execute sets rates and replicas, the move takes its time, and --verify clears both."""
    admin = AdminClient({"bootstrap.servers": two.bootstrap})
    new = NewTopic("t", 1, replica_assignment=[[1]])
    admin.create_topics([new])["t"].result(10)
    producer = Producer({"bootstrap.servers": two.bootstrap})
    for _ in range(RECORDS):
        producer.produce("t", VALUE)
    assert producer.flush(30) == 0
    plan = tmp_path / "plan.json"
    moves = [{"topic": "t", "partition": 0, "replicas": [2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    def tool(*arguments: str) -> str:
        return java.run(
            java.kafka_class_path("3.9.2"),
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", two.bootstrap, "--reassignment-json-file", str(plan)),
            *arguments,
        )

    started = time.monotonic()
    assert f"limit was set to {RATE} B/s" in tool("--execute", "--throttle", str(RATE))
    for broker in ("1", "2"):
        settings = options_of(admin, ResourceType.BROKER, broker)
        assert [settings.get(name) for name in RATES] == [str(RATE)] * 2
    settings = options_of(admin, ResourceType.TOPIC, "t")
    assert [settings.get(name) for name in REPLICAS] == ["0:1", "0:2"]
    assert "is still in progress" in tool("--verify")
    _wait_for_replicas(admin, [2])
    assert time.monotonic() - started > SECONDS
    assert "is completed" in tool("--verify")
    for broker in ("1", "2"):
        _wait_until_unset(admin, ResourceType.BROKER, broker, RATES)
    _wait_until_unset(admin, ResourceType.TOPIC, "t", REPLICAS)


def _wait_until_unset(
    admin: AdminClient, kind: ResourceType, name: str, options: Sequence[str]
) -> None:
    """Wait until the broker has read the change: the controller responds before."""
    deadline, pause = time.monotonic() + 20, threading.Event()
    while left := options_of(admin, kind, name).keys() & set(options):
        assert time.monotonic() < deadline, f"{name} still has {left}"
        pause.wait(0.05)


def _wait_for_replicas(admin: AdminClient, expected: list[int]) -> None:
    deadline, pause = time.monotonic() + 60, threading.Event()
    while admin.list_topics("t", timeout=10).topics["t"].partitions[0].replicas != expected:
        assert time.monotonic() < deadline
        pause.wait(0.1)

"""Apache Kafka's own tools move partitions between the log directories of a broker."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.cluster import Cluster
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

TOOLS = "org.apache.kafka.tools"
COUNT = 500
PADDING = b"x" * 2000


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two log directories."""
    root = tmp_path_factory.mktemp("directories")
    return root / "one", root / "two"


@pytest.fixture(scope="module")
def cluster(folders: tuple[Path, Path]) -> Iterator[Cluster]:
    """Return a broker with these directories."""
    dirs = ",".join(map(str, folders))
    with Cluster(options={"log.dirs": dirs}, data=folders[0]) as running:
        yield running


def tool(cluster: Cluster, command: str, *arguments: str) -> str:
    """Run one of the tools of 4.3.0."""
    class_path = java.kafka_class_path("4.3.0")
    main_class = f"{TOOLS}.{command}"
    return java.run(class_path, main_class, "--bootstrap-server", cluster.bootstrap, *arguments)


def described(cluster: Cluster, topic: str) -> dict[str, list[dict[str, Any]]]:
    """Return the description of a topic by kafka-log-dirs, by directory."""
    output = tool(cluster, "LogDirsCommand", "--describe", "--topic-list", topic)
    document = json.loads(output.splitlines()[-1])
    directories = document["brokers"][0]["logDirs"]
    assert all(item["error"] is None for item in directories)
    return {item["logDir"]: item["partitions"] for item in directories}


def write_plan(folder: Path, topic: str, directory: Path) -> tuple[str, str]:
    """Write a reassignment to one directory; return the arguments for it."""
    plan = folder / f"{topic}.json"
    move = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [str(directory)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    return "--reassignment-json-file", str(plan)


def test_kafkas_tools_move_a_partition_while_it_is_written(
    cluster: Cluster, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """`kafka-reassign-partitions` starts and verifies the move, and kafka-log-dirs shows the new
    directory.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("moving", 1, 1)])["moving"].result()
    source, target = folders if (folders[0] / "moving-0").exists() else folders[::-1]
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("moving", b"%d" % number + PADDING)
    assert producer.flush(30) == 0
    plan = write_plan(tmp_path, "moving", target)
    command = "reassign.ReassignPartitionsCommand"
    # Slowly at first, so that the tools see it on its way.
    started = tool(cluster, command, "--execute", *plan, "--replica-alter-log-dirs-throttle", "50")
    assert f"Successfully started moving log directory to {target}" in started
    during = described(cluster, "moving")
    assert [item["isFuture"] for item in during[str(source)]] == [False]
    assert [item["isFuture"] for item in during[str(target)]] == [True]
    assert during[str(target)][0]["offsetLag"] > 0
    verified = tool(cluster, command, "--verify", "--preserve-throttles", *plan)
    assert "still in progress" in verified
    for number in range(COUNT, 2 * COUNT):
        producer.produce("moving", b"%d" % number + PADDING)
    assert producer.flush(30) == 0
    tool(
        cluster, command, "--execute", "--additional", *plan,
        "--replica-alter-log-dirs-throttle", "100000000",
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not (target / "moving-0").exists():
        assert time.monotonic() < deadline
        producer.poll(0.05)
    verified = tool(cluster, command, "--verify", *plan)
    assert "completed successfully" in verified
    after = described(cluster, "moving")
    assert after[str(source)] == []
    assert [(item["isFuture"], item["offsetLag"]) for item in after[str(target)]] == [(False, 0)]
    expected = [b"%d" % number + PADDING for number in range(2 * COUNT)]
    assert read(cluster, "moving", 2 * COUNT) == expected


def read(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    """Read `count` records from the beginning."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    data: list[bytes | None] = []
    while len(data) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        data.append(message.value())
    consumer.close()
    return data

"""The consumer protocol (KIP-848) with the unmodified programs of Apache Kafka 4.3."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.base.clock import RealClock
from ottla.coordinators.groups.shard import GroupShard
from ottla.testing.cluster import Cluster
from ottla.wire.records.records import iterate_records
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

KAFKA = "4.3.0"
TOOLS = "org.apache.kafka.tools"
PARTITIONS = 12
PATIENCE_S = 60.0
OPTIONS = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "2000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster of one that keeps its files, with 120 numbered records in 12 partitions."""
    with Cluster(data=tmp_path / "data", options=OPTIONS) as running:
        client = AdminClient({"bootstrap.servers": running.bootstrap})
        client.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result()
        produce(running, 0, 120)
        yield running


def produce(cluster: Cluster, first: int, count: int) -> None:
    """Write numbered records to all partitions in turn."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(first, first + count):
        producer.produce("t", value=str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def groups_command(cluster: Cluster, *words: str) -> list[list[str]]:
    """Run kafka-consumer-groups and return the words of its lines."""
    output = java.run(
        java.client_class_path(KAFKA),
        f"{TOOLS}.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", cluster.bootstrap),
        *words,
    )
    return [line.split() for line in output.splitlines() if line.strip()]


class Verifiable:
    """A VerifiableConsumer: it prints its assignments and records, one JSON object a line."""

    def __init__(
        self, bootstrap: str, folder: Path, *words: str, protocol: str = "consumer"
    ) -> None:
        self.output = folder / f"out-{time.monotonic_ns()}"
        command = java.command(
            java.client_class_path(KAFKA),
            f"{TOOLS}.VerifiableConsumer",
            *("--bootstrap-server", bootstrap, "--topic", "t", "--group-id", "g"),
            *("--group-protocol", protocol, "--reset-policy", "earliest", "--verbose"),
            *words,
        )
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.output.read_text().splitlines()
        documents = [
            json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")
        ]
        return [event for event in documents if event["name"] == name]

    def values(self) -> list[int]:
        """Return the values that it has read."""
        return [int(event["value"]) for event in self.events("record_data")]

    def share(self) -> int:
        """Return the number of its partitions."""
        share = 0
        for line in self.output.read_text().splitlines():
            event = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if event.get("name") == "partitions_assigned":
                share += len(event["partitions"])
            elif event.get("name") in ("partitions_revoked", "partitions_lost"):
                share -= len(event["partitions"])
        return share

    def end(self, *, kill: bool = False) -> None:
        """Stop it; it leaves its group unless it is killed."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(PATIENCE_S)


def until(runs: Verifiable, is_done: Callable[[], bool]) -> None:
    """Check again, while a consumer runs, until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline
        with pytest.raises(subprocess.TimeoutExpired):
            runs.process.wait(0.05)


def test_java_consumers_share_and_take_over(cluster: Cluster, tmp_path: Path) -> None:
    """Two members have six partitions each; if one is killed, the other resumes from its commits."""
    one = Verifiable(cluster.bootstrap, tmp_path)
    two = Verifiable(cluster.bootstrap, tmp_path)
    try:
        until(one, lambda: one.share() == two.share() == PARTITIONS // 2)
        until(one, lambda: len({*one.values(), *two.values()}) == 120)
        until(one, lambda: _committed(cluster) == 120)
        two.end(kill=True)
        produce(cluster, 120, 120)
        until(one, lambda: one.share() == PARTITIONS)
        until(one, lambda: len({*one.values(), *two.values()}) == 240)
    finally:
        one.end()
        two.end(kill=True)
    everything = sorted(one.values() + two.values())
    assert everything == list(range(240))


def _committed(cluster: Cluster) -> int:
    rows = groups_command(cluster, "--describe", "--group", "g", "--offsets")
    return sum(int(row[3]) for row in rows if row[:2] == ["g", "t"] and row[3] != "-")


def test_console_consumer_and_groups_command(cluster: Cluster) -> None:
    """The console consumer uses the new protocol; the groups command shows the group's type."""
    output = java.run(
        java.client_class_path(KAFKA),
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", "t", "--from-beginning"),
        *("--group", "g", "--max-messages", "120", "--timeout-ms", "30000"),
        *("--command-property", "group.protocol=consumer"),
    )
    assert sorted(map(int, output.split())) == list(range(120))
    assert groups_command(cluster, "--list", "--type")[-1] == ["g", "Consumer"]
    assert groups_command(cluster, "--list", "--type", "classic") == [["GROUP", "TYPE"]]
    state = groups_command(cluster, "--describe", "--group", "g", "--state")[-1]
    assert (state[0], state[-2:]) == ("g", ["Empty", "0"])
    assert _committed(cluster) == 120
    reset = ("--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute")
    assert len([row for row in groups_command(cluster, *reset) if row[:2] == ["g", "t"]]) == 12
    assert _committed(cluster) == 0
    said_again = groups_command(cluster, "--delete", "--group", "g")
    assert "successful" in " ".join(map(" ".join, said_again))


def test_kafka_dumps_every_record_of_our_groups(cluster: Cluster, tmp_path: Path) -> None:
    """DumpLogSegments decodes keys and values of all types without an error."""
    one = Verifiable(cluster.bootstrap, tmp_path)
    until(one, lambda: len(set(one.values())) == 120)
    described = groups_command(cluster, "--describe", "--group", "g", "--members", "--verbose")
    (member,) = [row for row in described if row[0] == "g"]
    assert str(PARTITIONS) in member
    one.end()
    cluster.restart()
    (log,) = sorted((Path(cluster.data) / "__consumer_offsets-0").glob("*.log"))
    output = java.run(
        java.kafka_class_path(KAFKA),
        "org.apache.kafka.tools.DumpLogSegments",
        *("--offsets-decoder", "--files", str(log)),
    )
    kinds = {
        json.loads(line.partition("key: ")[2].partition(" payload: ")[0])["type"]
        for line in output.splitlines()
        if " key: {" in line
    }
    assert kinds >= {"1", "3", "5", "6", "7", "8"}
    assert "isvalid: false" not in output
    assert '"subscribedTopicNames":["t"]' in output
    assert '"assignmentEpochs":[2,2,2,2,2,2,2,2,2,2,2,2]' in output


def test_we_read_the_groups_of_apache_kafka(tmp_path: Path) -> None:
    """Replaying Kafka's own log restores its epochs, members and assignment."""
    kafka = java.KafkaNode(tmp_path, options=[f"{name}={text}" for name, text in OPTIONS.items()])
    kafka.class_path = java.kafka_class_path(KAFKA)
    kafka.start()
    try:
        client = AdminClient({"bootstrap.servers": kafka.bootstrap})
        client.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result()
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "g"}
        consumer = Consumer(settings | {"group.protocol": "consumer", "group.instance.id": "i"})
        consumer.subscribe(["^t"])
        deadline = time.monotonic() + PATIENCE_S
        while len(consumer.assignment()) < PARTITIONS:
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        consumer.close()
    finally:
        kafka.stop()
    shard = GroupShard(None, RealClock(), lambda: None)  # type: ignore[arg-type]
    for path in sorted(kafka.data.glob("__consumer_offsets-*/*.log")):
        for record in iterate_records(path.read_bytes()):
            shard.replay(record)
    group = shard.consumers.get("g")
    assert group is not None
    # The member is static and will come back, so that none of its state is removed.
    (member,) = group.members.values()
    assert (member.instance_id, member.epoch, member.subscribed_regex) == ("i", -2, "(^t)")
    assert group.regexes["(^t)"].topics == {"t"}
    (assigned,) = member.assigned.values()
    (target,) = group.target_of(member.member_id).values()
    assert set(assigned) == set(target) == set(range(PARTITIONS))
    assert group.epoch == group.assignment_epoch == 2

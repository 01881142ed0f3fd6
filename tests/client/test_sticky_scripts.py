"""The consumers among Kafka's scripts in a group with the StickyAssignor."""

import json

import pytest

from ottla.client import AdminClient
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.client.test_consumer import fill

STICKY = "org.apache.kafka.clients.consumer.StickyAssignor"


def test_console_consumer_reads_and_commits(
    cluster: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run reads what the first one has left."""
    fill(cluster, topic, [b"%d" % number for number in range(6)])
    words = (
        f"--bootstrap-server {cluster.bootstrap} --topic {topic} --group {topic} --from-beginning "
        f"--timeout-ms 10000 --command-property partition.assignment.strategy={STICKY}"
    ).split()
    assert entry.run("kafka-console-consumer", [*words, "--max-messages", "4"]) == 0
    first = capsys.readouterr().out.split()
    assert entry.run("kafka-console-consumer", [*words, "--max-messages", "2"]) == 0
    second = capsys.readouterr().out.split()
    assert sorted(first + second) == [str(number) for number in range(6)]
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        assert admin.describe_group(topic).members == ()


def test_verifiable_consumer_reports_its_assignment(
    cluster: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--assignment-strategy` takes the Java class."""
    fill(cluster, topic, [b"1", b"2", b"3"])
    words = (
        f"--bootstrap-server {cluster.bootstrap} --topic {topic} --group-id {topic} "
        f"--max-messages 3 --assignment-strategy {STICKY}"
    ).split()
    assert entry.run("kafka-verifiable-consumer", words) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assigned = [event for event in events if event["name"] == "partitions_assigned"]
    assert [len(event["partitions"]) for event in assigned] == [3]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 3

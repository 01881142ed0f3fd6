"""The Java client 4.3 with `ottla up`, through the programs that it contains, unmodified."""

import json
from typing import Any

import pytest

from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.operations.offsets.moments import render_moment
from ottla.testing.process import BrokerProcess, run_command
from tests.compat import java
from tests.compat.clients import Confluent, ToWrite

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
VERSION = "4.3.0"
TOOLS = "org.apache.kafka.tools"


def _run(program: str, *words: str) -> str:
    return java.run(java.client_class_path(VERSION), f"{TOOLS}.{program}", *words)


def _events(output: str) -> list[dict[str, Any]]:
    """Return the reports of the verifiable tools: one JSON object a line."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def _named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


def _end(broker: BrokerProcess, topic: str) -> int:
    with Brokers(broker.bootstrap) as brokers:
        return offsets.list_offsets(brokers, {(topic, 0): offsets.LATEST})[topic, 0].offset


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_performance_tool_writes_with_every_codec(
    broker: BrokerProcess, topic: str, codec: str
) -> None:
    """The tool writes as fast as it can, idempotently; every record is stored, in the codec sent."""
    output = _run(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--bootstrap-server", broker.bootstrap),
        *("--command-property", f"compression.type={codec}"),
    )
    assert "20000 records sent" in output
    assert _end(broker, topic) == 20_000
    (segment,) = (broker.data / f"{topic}-0").glob("*.log")
    dumped = run_command("log", "dump", str(segment), "--output", "json").stdout.splitlines()
    assert {json.loads(line)["codec"] for line in dumped} == {codec}


def test_group_resumes_after_restart_of_client_and_broker(
    broker: BrokerProcess, topic: str
) -> None:
    """VerifiableProducer and VerifiableConsumer agree on every offset after both restarts."""
    at = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    written = _events(_run("VerifiableProducer", *at, "--max-messages", "1000"))
    acknowledged = _named(written, "producer_send_success")
    assert [event["offset"] for event in acknowledged] == list(range(1000))
    reading = (*at, "--group-id", f"group-of-{topic}", "--reset-policy", "earliest")
    first = _events(_run("VerifiableConsumer", *reading, "--max-messages", "400"))
    broker.restart()
    second = _events(_run("VerifiableConsumer", *reading, "--max-messages", "600"))
    for events, start, end in ((first, 0, 400), (second, 400, 1000)):
        ranges = [
            (part["minOffset"], part["maxOffset"])
            for event in _named(events, "records_consumed")
            for part in event["partitions"]
        ]
        offsets_read = [at for low, high in ranges for at in range(low, high + 1)]
        assert offsets_read == list(range(start, end))
        commits = _named(events, "offsets_committed")
        assert all(commit["success"] for commit in commits)
        assert commits[-1]["offsets"][0]["offset"] == end


def test_reading_starts_at_timestamp(broker: BrokerProcess, topic: str) -> None:
    """Kafka's own tools find the offset of a timestamp; its console consumer reads from there."""
    start = 1_700_000_000_000
    records = [
        ToWrite(key=None, value=b"%d" % number, timestamp=start + 1000 * number)
        for number in range(45)
    ]
    Confluent().write(broker.bootstrap, topic, records, "none")
    arguments = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    output = _run("GetOffsetShell", *arguments, "--time", str(start + 41_500))
    assert output.split() == [f"{topic}:0:42"]
    group = f"group-of-{topic}"
    reset = _run(
        "consumer.group.ConsumerGroupCommand",
        *(*arguments, "--group", group, "--reset-offsets", "--execute"),
        *("--to-datetime", render_moment(start + 41_500)),
    )
    assert reset.split()[-4:] == [group, topic, "0", "42"]
    read = _run("consumer.ConsoleConsumer", *arguments, "--group", group, "--max-messages", "3")
    assert [line for line in read.splitlines() if line.isdecimal()] == ["42", "43", "44"]

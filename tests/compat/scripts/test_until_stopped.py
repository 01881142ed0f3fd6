"""Scripts that run until they are stopped, beside Apache Kafka's own: no transcript can hold them."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.client import AdminClient, Consumer, Producer
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.compat import java
from tests.compat.scripts.transcript import MODERN

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
_PATIENCE_S = 60.0
_VALUES = [b"a", b"b", b"c"]
_OURS = "from ottla_scripts.entry import main; main({!r})"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


@pytest.fixture(name="kafka", scope="module")
def _kafka() -> java.KafkaNode:
    """Return an Apache Kafka broker with the topic `orders`."""
    node = java.shared_node(MODERN, java.GROUPS_OF_ALL_TYPES)
    write(node.bootstrap, "orders")
    return node


def write(bootstrap: str, topic: str) -> None:
    """Create a topic with three records."""
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in _VALUES:
            producer.send(topic, value, key=b"k", headers=[("h", value)])


def read(bootstrap: str, topic: str) -> list[tuple[bytes, bytes, object]]:
    """Wait for three records, and return them."""
    rows: list[tuple[bytes, bytes, object]] = []
    deadline = time.monotonic() + _PATIENCE_S
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign({(topic, 0): 0})
        while len(rows) < len(_VALUES):
            assert time.monotonic() < deadline, rows
            rows += [(row.key, row.value, list(row.headers)) for row in consumer.poll(0.2)]
    return rows


@contextmanager
def running(line: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run a program until the end of the block."""
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        finally:
            process.kill()
            process.communicate()


def files(folder: Path, source: str, target: str) -> list[str]:
    """Write the files of kafka-mirror-maker, and return its options."""
    consumer, producer = folder / "consumer.properties", folder / "producer.properties"
    consumer.write_text(
        f"bootstrap.servers={source}\ngroup.id=mirror\nauto.offset.reset=earliest\n"
    )
    producer.write_text(f"bootstrap.servers={target}\n")
    return ["--consumer.config", str(consumer), "--producer.config", str(producer)]


def test_replica_verification_reports_what_apache_kafkas_reports(kafka: java.KafkaNode) -> None:
    """Both print the start and then the largest lag, with the offset that they have reached."""
    arguments = ["--broker-list", kafka.bootstrap, "--topics-include", "orders", "--time", "-2"]
    arguments += ["--report-interval-ms", "100", "--max-wait-ms", "100"]
    name = "org.apache.kafka.tools.ReplicaVerificationTool"
    printed = []
    for line in (
        [sys.executable, "-c", _OURS.format("kafka-replica-verification"), *arguments],
        java.command(kafka.class_path, name, *arguments),
    ):
        with running(line) as process:
            assert process.stdout is not None
            # A logger's lines, of the client and of the deprecated tool, are not compared.
            own_lines = (text for text in process.stdout if not text.startswith("WARN - "))
            lines = [next(own_lines, ""), next(own_lines, "")]
            # Reports before the first fetch have the start of the partition.
            while "offset 3" not in lines[-1]:
                assert lines[-1], "the program has ended"
                lines = [lines[0], next(own_lines, "")]
        printed.append([_MOMENT.sub("TIME", text) for text in lines])
    assert printed[0] == printed[1]


def test_mirror_maker_copies_to_and_from_apache_kafka(
    kafka: java.KafkaNode, tmp_path: Path
) -> None:
    """The copy is the same as from Apache Kafka's MirrorMaker with the same files, in both
    directions.
    """
    with Cluster() as ottla:
        arguments = [*files(tmp_path, kafka.bootstrap, ottla.bootstrap), "--include", "orders"]
        assert entry.run("kafka-mirror-maker", [*arguments, "--until-end"]) == 0
        copied = read(ottla.bootstrap, "orders")
        write(ottla.bootstrap, "own")
        arguments = [*files(tmp_path, ottla.bootstrap, kafka.bootstrap), "--include", "own"]
        assert entry.run("kafka-mirror-maker", [*arguments, "--until-end"]) == 0
        assert read(kafka.bootstrap, "own") == copied
        write(ottla.bootstrap, "theirs")
        arguments = [*files(tmp_path, ottla.bootstrap, kafka.bootstrap), "--include", "theirs"]
        # Apache Kafka 4.0 has removed the tool.
        class_path = java.kafka_class_path("3.9.2")
        with running(java.command(class_path, "kafka.tools.MirrorMaker", *arguments)):
            assert read(kafka.bootstrap, "theirs") == copied
    assert copied == [(b"k", value, [("h", value)]) for value in _VALUES]

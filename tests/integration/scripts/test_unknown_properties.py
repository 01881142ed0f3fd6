"""A file with options of the Java client that librdkafka lacks serves scripts that move records."""

import io
import sys
from pathlib import Path

import pytest

from ottla.client.raw.producer import RecordProducer
from ottla.testing import Cluster
from ottla_scripts import entry

pytestmark = pytest.mark.slow

_FILE = "sasl.login.refresh.window.factor=0.8\nschema.registry.url=http://localhost:8081\n"


def test_unknown_options_are_ignored_and_named(
    ottla_cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The Java client warns of options that it does not use; a misspelled one is found by that."""
    file = tmp_path / "client.properties"
    file.write_text(_FILE)
    line = ["--bootstrap-server", ottla_cluster.bootstrap, "--command-config", str(file)]
    line += ["--topic", "t"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    assert entry.run("kafka-console-producer", line) == 0
    limits = ["--from-beginning", "--max-messages", "1"]
    assert entry.run("kafka-console-consumer", [*line, *limits]) == 0
    out, errors = capfdbinary.readouterr()
    assert out == b"one\n"
    for name in (b"sasl.login.refresh.window.factor", b"schema.registry.url"):
        assert errors.count(b"WARN The option %s is not known, and is ignored.\n" % name) == 2


@pytest.mark.parametrize(
    "line",
    [
        "kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1",
        "kafka-consumer-perf-test --topic full --num-records 1",
        "kafka-e2e-latency --topic t --num-records 1 --producer-acks all --record-size 1",
        "kafka-verifiable-producer --topic t --max-messages 1",
        "kafka-verifiable-consumer --topic full --group-id g --max-messages 1",
    ],
)
def test_unknown_options_do_not_stop_a_measurement(
    line: str, ottla_cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As with the Java client, one file may serve several programs."""
    ottla_cluster.create_topic("full")
    with RecordProducer(ottla_cluster.bootstrap) as producer:
        producer.send("full", b"x")
    file = tmp_path / "client.properties"
    file.write_text(_FILE)
    name, *words = line.split()
    words += ["--bootstrap-server", ottla_cluster.bootstrap, "--command-config", str(file)]
    assert entry.run(name, words) == 0
    errors = capfd.readouterr().err
    for option in ("sasl.login.refresh.window.factor", "schema.registry.url"):
        assert f"WARN The option {option} is not known, and is ignored.\n" in errors

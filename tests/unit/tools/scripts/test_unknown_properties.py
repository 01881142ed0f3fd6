"""A file with options of the Java client that librdkafka lacks serves the console scripts, too."""

import io
import sys
from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.tools.scripts import entry

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

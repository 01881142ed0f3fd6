"""`ottla streams run` passes its options to the application."""

import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.topology.topology import Topology
from tests.unit.tools.test_streams_run import MODULE


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a module in the current directory of the command."""
    (tmp_path / "told_topology.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return "told_topology"


def test_set_options_are_passed_to_the_application(
    run: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Application options are passed as well; one that is also a flag replaces the flag's default."""
    seen: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def refuse(_topology: Topology, config: dict[str, Any], **arguments: Any) -> None:
        seen.append((config, arguments))
        raise ConfigError("seen")

    monkeypatch.setattr("ottla.streams.kafka_streams.KafkaStreams", refuse)
    pairs = "prices.url=http://here", "max.records=5", "processing.guarantee=exactly_once_v2"
    arguments = [each for pair in pairs for each in ("--set", pair)]
    assert "seen" in run("streams", "run", f"{module}:topology", *arguments).errors
    ((config, options),) = seen
    assert config == {
        "prices.url": "http://here",
        "max.records": 5,
        "processing.guarantee": "exactly_once_v2",
    }
    assert "processing_guarantee" not in options


def test_a_file_of_options_is_passed_to_the_application(
    run: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options of TLS and SASL only; --set overrides them."""
    seen: list[dict[str, Any]] = []

    def refuse(_topology: Topology, config: dict[str, Any], **_: Any) -> None:
        seen.append(config)
        raise ConfigError("seen")

    monkeypatch.setattr("ottla.streams.kafka_streams.KafkaStreams", refuse)
    Path("client.properties").write_text("security.protocol=SSL\ngroup.id=g\n")
    words = ("streams", "run", f"{module}:topology", "--command-config", "client.properties")
    run(*words, "--set", "ssl.key.password=123")
    assert seen == [{"security.protocol": "SSL", "ssl.key.password": 123}]
    missing = run(*words[:-1], "nowhere.properties")
    assert (missing.code, len(seen)) == (2, 1)
    assert "nowhere.properties" in missing.errors

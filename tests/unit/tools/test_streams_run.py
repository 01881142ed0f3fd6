"""`ottla streams run` finds a topology by its module and name."""

import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ottla.base.errors import ConfigError
from ottla.streams.topology.topology import Topology
from ottla.tools.streams.run import load_topology

_MODULE = """
from ottla.streams import StreamsBuilder
builder = StreamsBuilder()
builder.stream("in").to("out")
topology = builder.build()
def build():
    return topology
number = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a module in the current directory of the command."""
    (tmp_path / "told_topology.py").write_text(_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return "told_topology"


@pytest.mark.parametrize("name", ["topology", "build", "builder"])
def test_a_topology_is_found(module: str, name: str) -> None:
    """The name is a topology, a function that returns one, or a builder."""
    topology, actual = load_topology(f"{module}:{name}")
    assert isinstance(topology, Topology)
    assert actual == module


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("told_topology", "is not of the form MODULE:NAME"),
        ("told_topology:nothing", r"has no nothing\. There are: build, builder, topology\."),
        ("told_topology:topologie", r"has no topologie\. Did you mean topology\?"),
        ("told_topology:number", "is int"),
        (
            "not_there:topology",
            r"No module named 'not_there'; looked in .* There are: told_topology\.",
        ),
        ("told_topolgy:topology", r"No module named .* Did you mean told_topology\?"),
    ],
)
def test_errors_are_reported_before_the_start(module: str, place: str, message: str) -> None:
    """The error comes before anything starts."""
    with pytest.raises(click.UsageError, match=message):
        load_topology(place)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("x = ", "SyntaxError"),
        ("from ottla.streams import *\nStreamsBuilder().stream('in').mapValues", "map_values?"),
        ("from ottla.streams import *\nStreamsBuilder().stream('in').map(lambda: 1)", "takes 0"),
    ],
)
def test_exception_of_the_users_module_has_its_location(
    module: str, tmp_path: Path, code: str, message: str
) -> None:
    """The traceback has only the user's frames, none of Ottla or Python."""
    (tmp_path / "wrong_topology.py").write_text(code)
    sys.modules.pop("wrong_topology", None)
    with pytest.raises(ConfigError) as caught:
        load_topology("wrong_topology:topology")
    text = str(caught.value)
    assert text.startswith("Cannot import wrong_topology.\n")
    assert message in text
    assert {Path(match).name for match in re.findall(r'File "([^"]+)"', text)} == {
        "wrong_topology.py"
    }


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
    """Those of TLS and SASL only; --set overrides them."""
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

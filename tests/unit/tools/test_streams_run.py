"""`ottla streams run` finds the topology that it is told of."""

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
    """A module in the folder where the command runs."""
    (tmp_path / "told_topology.py").write_text(_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return "told_topology"


@pytest.mark.parametrize("name", ["topology", "build", "builder"])
def test_a_topology_is_found(module: str, name: str) -> None:
    """Itself, a function that builds it, or its builder."""
    topology, found = load_topology(f"{module}:{name}")
    assert isinstance(topology, Topology)
    assert found == module


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
def test_what_is_wrong_is_said(module: str, place: str, message: str) -> None:
    """Before anything starts."""
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
def test_what_the_users_module_raises_is_told_with_its_place(
    module: str, tmp_path: Path, code: str, message: str
) -> None:
    """The user's frames alone: neither ours nor Python's."""
    (tmp_path / "wrong_topology.py").write_text(code)
    sys.modules.pop("wrong_topology", None)
    with pytest.raises(ConfigError) as caught:
        load_topology("wrong_topology:topology")
    told = str(caught.value)
    assert told.startswith("Cannot import wrong_topology.\n")
    assert message in told
    assert {Path(each).name for each in re.findall(r'File "([^"]+)"', told)} == {
        "wrong_topology.py"
    }


def test_options_of_set_reach_the_application_under_their_own_names(
    run: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the application's own as well; one that is also a flag replaces the flag's default."""
    seen: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def refuse(_topology: Topology, config: dict[str, Any], **words: Any) -> None:
        seen.append((config, words))
        raise ConfigError("seen")

    monkeypatch.setattr("ottla.streams.kafka_streams.KafkaStreams", refuse)
    pairs = "prices.url=http://here", "max.records=5", "processing.guarantee=exactly_once_v2"
    words = [each for pair in pairs for each in ("--set", pair)]
    assert "seen" in run("streams", "run", f"{module}:topology", *words).errors
    ((config, options),) = seen
    assert config == {
        "prices.url": "http://here",
        "max.records": 5,
        "processing.guarantee": "exactly_once_v2",
    }
    assert "processing_guarantee" not in options

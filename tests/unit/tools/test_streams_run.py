"""`ottla streams run` finds a topology by its module and name."""

import re
import sys
from pathlib import Path

import click
import pytest

from ottla.base.errors import ConfigError
from ottla.streams.topology.topology import Topology
from ottla.tools.streams.run import load_topology

MODULE = """
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
    (tmp_path / "told_topology.py").write_text(MODULE)
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

"""Our scripts know every option of Apache Kafka's tools: recorded lists, compared without Java."""

import json
from pathlib import Path

import pytest

from ottla.base.loading import load_module
from ottla_scripts.flags import COMMON
from ottla_scripts.table import SCRIPTS
from tests.compat.scripts.options import OPTIONS

pytestmark = pytest.mark.slow

# From the sources of the versions 2.4.1 and 3.4.1 (`parser.accepts`, `addArgument`).
FORMER = OPTIONS.with_name("former_options.json")
RECORDED: dict[str, list[str]] = json.loads(OPTIONS.read_text(encoding="utf-8"))


def test_every_tool_has_options() -> None:
    """The lists are not empty: the pattern has found them."""
    assert len(RECORDED) > 20
    assert all(len(names) > 1 for names in RECORDED.values())


@pytest.mark.parametrize("script", RECORDED)
def test_every_option_is_known(script: str) -> None:
    """An option of Apache Kafka 4.3.0 is an option of ours, or its successor is."""
    assert _missing(script, RECORDED[script]) == []


@pytest.mark.parametrize(("script", "names"), json.loads(FORMER.read_text("utf-8")).items())
def test_every_option_of_a_former_version_is_known(script: str, names: list[str]) -> None:
    """A command line of Apache Kafka 2.4 or 3.4 is not refused for its options."""
    assert names
    assert _missing(script, names) == []


def _missing(script: str, names: list[str]) -> list[str]:
    module = load_module(SCRIPTS[script].module)
    spec = getattr(module, "SPEC", None)
    if spec is None:
        # The script reads its words itself.
        assert module.__file__ is not None
        source = Path(module.__file__).read_text(encoding="utf-8")
        return [name for name in names if f"--{name}" not in source]
    return [name for name in names if name not in {**spec.flags, **spec.old, **COMMON}]

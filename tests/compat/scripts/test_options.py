"""Our scripts know every option of Apache Kafka's tools: recorded lists, compared without Java."""

import json
from pathlib import Path

import pytest

from ottla.base.loading import load_module
from ottla.tools.scripts.flags import COMMON
from ottla.tools.scripts.table import SCRIPTS
from tests.compat.scripts.options import OPTIONS

RECORDED: dict[str, list[str]] = json.loads(OPTIONS.read_text(encoding="utf-8"))


def test_every_tool_has_options() -> None:
    """The lists are not empty: the pattern has found them."""
    assert len(RECORDED) > 20
    assert all(len(names) > 1 for names in RECORDED.values())


@pytest.mark.parametrize("script", RECORDED)
def test_every_option_is_known(script: str) -> None:
    """An option of Apache Kafka 4.3.0 is an option of ours, or its successor is."""
    module = load_module(SCRIPTS[script].module)
    spec = getattr(module, "SPEC", None)
    if spec is None:
        # The script reads its words itself.
        assert module.__file__ is not None
        source = Path(module.__file__).read_text(encoding="utf-8")
        missing = [name for name in RECORDED[script] if f"--{name}" not in source]
    else:
        missing = [
            name for name in RECORDED[script] if name not in {**spec.flags, **spec.old, **COMMON}
        ]
    assert missing == []

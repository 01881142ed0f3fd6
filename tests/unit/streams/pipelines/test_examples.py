"""The example files are good ones, and the guide shows what the checker says."""

import re
from pathlib import Path

import pytest

from ottla.streams.pipelines import check
from ottla.streams.pipelines.explaining import explain

_ROOT = Path(__file__).resolve().parents[4]
_EXAMPLES = sorted((_ROOT / "examples" / "pipelines").glob("*.yaml"))
_GUIDE = (_ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
_FILES = re.findall(r"```yaml\n(.*?)```\n(?:\n```text\n(.*?)```)?", _GUIDE, re.DOTALL)


@pytest.mark.parametrize("file", _EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_right(file: Path) -> None:
    """Not even a warning; every part of it is explained."""
    checked = check(file.read_text(encoding="utf-8"))
    assert checked.problems == []
    assert checked.pipeline is not None
    rows = explain(checked.pipeline)
    assert {row["kind"] for row in rows} <= {"source", "step", "sink"}
    assert all(row["does"] for row in rows)
    assert all(row["promises"] for row in rows if row["kind"] == "sink")


@pytest.mark.parametrize(("text", "told"), _FILES)
def test_a_file_of_the_guide_is_right_or_shows_what_is_wrong(text: str, told: str) -> None:
    """What the guide says the checker says, it says."""
    found = [
        f"broken.yaml:{each.place.line}:{each.place.column}: {each.severity}: {each.message}"
        for each in check(text).problems
    ]
    assert found == told.splitlines()


def test_the_guide_names_every_example() -> None:
    """None is forgotten."""
    assert len(_EXAMPLES) >= 5
    assert [path.name for path in _EXAMPLES if path.name not in _GUIDE] == []

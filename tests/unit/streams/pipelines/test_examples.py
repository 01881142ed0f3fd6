"""The example files are valid, and the guide shows the checker's actual messages."""

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
def test_an_example_is_valid(file: Path) -> None:
    """The checker reports no warnings, and explain describes every part."""
    checked = check(file.read_text(encoding="utf-8"))
    assert checked.problems == []
    assert checked.pipeline is not None
    rows = explain(checked.pipeline)
    assert {row["kind"] for row in rows} <= {"source", "step", "sink"}
    assert all(row["does"] for row in rows)
    assert all(row["promises"] for row in rows if row["kind"] == "sink")


@pytest.mark.parametrize(("text", "problems"), _FILES)
def test_a_file_of_the_guide_has_the_shown_problems(text: str, problems: str) -> None:
    """The messages in the guide are the checker's."""
    values = [
        f"broken.yaml:{problem.position.line}:{problem.position.column}: {problem.severity}: {problem.message}"
        for problem in check(text).problems
    ]
    assert values == problems.splitlines()


def test_the_guide_mentions_every_example() -> None:
    """No example file is missing from the guide."""
    assert len(_EXAMPLES) >= 5
    assert [path.name for path in _EXAMPLES if path.name not in _GUIDE] == []

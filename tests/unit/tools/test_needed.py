"""What verbs ask of Spark is there."""

import re
from pathlib import Path

import pytest

from ottla.tools.spark import needed

TOOLS = Path(needed.__file__).parents[1]
NAMES = {
    name
    for file in TOOLS.rglob("*.py")
    for name in re.findall(r'(?:needed\.|\b)module\("([\w.]+)"\)', file.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_modules_that_are_imported_by_name_exist(name: str) -> None:
    """No type checker and no law of imports sees such names."""
    assert needed.module(name).__name__ == f"ottla.streams.spark.{name}"


def test_names_are_found() -> None:
    """Else the test above would hold of nothing."""
    assert {
        "session.session",
        "session.class_archive",
        "pipelines.run",
        "pipelines.topic_files",
    } <= NAMES

"""Modules and attributes that commands import by name exist."""

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
    """Neither the type checker nor the import rules check such names."""
    assert needed.module(name).__name__ == name


def test_names_are_found() -> None:
    """Otherwise the test above would check nothing."""
    assert {
        "ottla.streams.spark.session.session",
        "ottla.streams.spark.session.class_archive",
        "ottla.streams.spark.pipelines.run",
        "ottla.streams.spark.pipelines.topic_files",
    } <= NAMES

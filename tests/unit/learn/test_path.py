"""The path through the lessons: levels, minutes, and what is done."""

import json
from pathlib import Path

import pytest

from ottla.learn import path, progress
from ottla.learn.course import LESSONS
from ottla.tools import main


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the reader have no progress yet."""
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path))


def test_every_lesson_is_once_in_the_path() -> None:
    """Three levels, and no lesson in two of them."""
    assert len(path.LEVELS) == 3
    assert sorted(path.ORDER) == sorted(LESSONS)


def test_map_shows_levels_minutes_and_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    """The rows are in the order of the path."""
    progress.mark(path.ORDER[0])
    assert main.run(["learn", "--map", "--output", "json"]) == 0
    first, second, *rest = json.loads(capsys.readouterr().out)
    assert (first["lesson"], first["done"], second["done"]) == (path.ORDER[0], True, False)
    assert (first["level"], rest[-1]["level"]) == ("first steps", "in depth")
    assert all(1 <= row["minutes"] <= 5 for row in (first, second, *rest))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_map_names_the_next_lesson(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the number of lessons that are done."""
    progress.mark(path.ORDER[0])
    assert main.run(["learn", "--map", "--language", language]) == 0
    done = capsys.readouterr()
    assert path.ORDER[1] in done.err
    assert str(len(LESSONS)) in done.err
    assert all(name in done.out for name in LESSONS)

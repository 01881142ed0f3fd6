"""Failed and flaky tests of a run."""

import json
from pathlib import Path

import pytest

from tests import run
from tests.runs import failures
from tests.runs.failures import Failures

TEXT = """
    def test_x():
>       assert 1 == 2, "text"
E       AssertionError: text
E       assert 1 == 2

tests/test_x.py:3: AssertionError
"""


def test_the_message_is_the_first_line_of_the_exception() -> None:
    """A text without an exception, such as the output of a process that ended, has its last line."""
    assert failures.message_of(TEXT) == "AssertionError: text"
    assert failures.message_of("one\nworker 'gw0' crashed\n") == "worker 'gw0' crashed"
    assert failures.message_of("") == "no message"


def test_the_first_failure_of_a_test_is_kept() -> None:
    """A tear-down that fails, too, does not hide why the test failed."""
    failed = Failures()
    failed.add("test_x", TEXT)
    failed.add("test_x", "E   RuntimeError: tear-down")
    assert failed.tests == {"test_x": "AssertionError: text"}


def test_failures_are_read_as_they_were_saved(tmp_path: Path) -> None:
    """A run that has written no file has no failures."""
    failed = Failures({"test_x": "AssertionError: text"}, ["a budget"])
    failed.save(tmp_path)
    assert failures.load(tmp_path) == failed
    failures.forget(tmp_path)
    assert failures.load(tmp_path) == Failures()


def test_flaky_tests_are_appended(tmp_path: Path) -> None:
    """The file of all flaky tests has date, commit and message of each."""
    failures.append_flaky(tmp_path, {"test_x": "one"})
    failures.append_flaky(tmp_path, {"test_x": "two", "test_y": "three"})
    rows = json.loads((tmp_path / "flaky.json").read_text())
    assert [(row["test"], row["message"]) for row in rows] == [
        ("test_x", "one"), ("test_x", "two"), ("test_y", "three"),
    ]  # fmt: skip
    assert all(row["date"] for row in rows)


@pytest.mark.parametrize(
    ("failed", "flaky", "budgets", "code"),
    [
        (3, 3, [], 0),
        (4, 4, [], 1),
        (3, 2, [], 1),
        (1, 1, ["a folder exceeds its budget"], 1),
    ],
)
def test_a_run_is_good_if_at_most_three_tests_are_flaky(
    failed: int, flaky: int, budgets: list[str], code: int
) -> None:
    """A test that fails twice fails the run, and so does a folder that exceeds its budget."""
    tests = {f"test_{number}": "" for number in range(failed)}
    passed = {f"test_{number}": "" for number in range(flaky)}
    assert run.exit_code(Failures(tests, budgets), passed) == code

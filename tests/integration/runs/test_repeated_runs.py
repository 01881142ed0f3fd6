"""`tests.run` and `tests.flaky` with tests that fail now and then, in processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.law import source

_FLAKY = """
from pathlib import Path

def test_flaky():
    runs = Path({marker!r})
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) % 2 == 0, "only every second run passes"

def test_good():
    pass
"""
_BROKEN = "def test_broken():\n    assert 1 == 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a test that fails in every first of two runs."""
    text = _FLAKY.format(marker=str(tmp_path / "runs.txt"))
    (tmp_path / "test_some.py").write_text(text)
    return tmp_path


def _run(module: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests in another folder, with the recorder as a plugin."""
    environment = os.environ | {
        "PYTHONPATH": str(source.ROOT),
        "PYTEST_ADDOPTS": "-p tests.runs.recorder",
    }
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_a_test_that_passes_when_repeated_is_flaky(folder: Path) -> None:
    """The run is good, and names the test with the message of its first failure."""
    done = _run("tests.run", folder, "test_some.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "flaky: 1 tests failed and passed when repeated" in done.stdout
    assert "test_some.py::test_flaky\n      AssertionError: only every second run" in done.stdout
    (row,) = json.loads((folder / "out" / "flaky.json").read_text())
    assert row["test"] == "test_some.py::test_flaky"


def test_a_test_that_fails_twice_fails_the_run(folder: Path) -> None:
    """It is not called flaky."""
    (folder / "test_some.py").write_text(_BROKEN)
    done = _run("tests.run", folder, "test_some.py")
    assert done.returncode == 1
    assert "flaky" not in done.stdout
    assert not (folder / "out" / "flaky.json").exists()


def test_a_run_records_the_time_of_each_test(folder: Path) -> None:
    """The table of a run names folders and tests."""
    done = _run("tests.run", folder, "test_some.py", "--durations-table", "-k", "good")
    assert "where the time went" in done.stdout
    rows = json.loads((folder / "out" / "durations.json").read_text())
    assert list(rows["tests"]) == ["test_some.py::test_good"]
    assert rows["processor_seconds"] > 0


def test_repeating_under_load_counts_the_failures(folder: Path) -> None:
    """Two of four runs fail."""
    done = _run("tests.flaky", folder, "test_some.py", "--runs", "4", "--load", "1")
    assert done.returncode == 1
    assert "1 tests failed at least once in 4 runs" in done.stdout
    assert "   2  test_some.py::test_flaky" in done.stdout

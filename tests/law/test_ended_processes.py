"""The distribution of tests to processes, when one of the processes ends."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.law import source

_TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(4))
def test_numbers(number):
    if {ends} and number == 1:
        os._exit(1)
"""


@pytest.mark.slow
def test_the_other_tests_run_when_a_process_ends(tmp_path: Path) -> None:
    """One test fails, and none is left out, which would make the run wait without end."""
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(source.ROOT / "tests/conftest.py", folder)
    for number in range(30):
        text = _TESTS.format(ends=number == 20)
        (folder / f"test_{number:02}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope",
         "--no-loadscope-reorder", "-o", "timeout=60", str(folder)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "1 failed, 119 passed" in done.stdout
    assert "crashed while running 'tests/test_20.py::test_numbers[1]'" in done.stdout

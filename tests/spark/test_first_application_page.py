"""Runs the three files of docs/first-application.md: the topology, its test, and the program, in
its process and on Spark.
"""

import re
from pathlib import Path

import pytest

from tests.spark.programs import Run, run_alone

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-application.md"
_FILE = re.compile(r"[Ss]ave (?:this|it) as `(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)


def _save_files(folder: Path) -> dict[str, str]:
    """Write the files of the page to a folder; return their texts by name."""
    files = dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return files


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    """The topology produces the results that the page's own test expects."""
    assert list(_save_files(tmp_path)) == ["orders.py", "test_orders.py", "run_orders.py"]
    assert "1 passed" in run_alone("pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)


def _save_program(folder: Path) -> str:
    """Write the files, and return the line that the program prints at its end."""
    (expected,) = re.findall(r"print\(.*\)  # (.*)", _save_files(folder)["run_orders.py"])
    return str(expected)


def test_the_program_of_the_page_runs_in_its_process(tmp_path: Path) -> None:
    """The program prints the totals that its last comment shows."""
    expected = _save_program(tmp_path)
    assert run_alone("run_orders.py", folder=tmp_path).splitlines()[-1] == expected


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_program_of_the_page_runs_on_spark(run_program: Run, tmp_path: Path) -> None:
    """The same program, with the word `spark`, prints the same totals."""
    expected = _save_program(tmp_path)
    assert run_program("run_orders.py", "spark", folder=tmp_path).splitlines()[-1] == expected

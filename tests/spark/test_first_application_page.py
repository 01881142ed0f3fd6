"""Runs the three files of docs/first-application.md: the topology, its test, and the program on
Spark.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-application.md"
_FILE = re.compile(r"[Ss]ave (?:this|it) as `(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)


def _save_files(folder: Path) -> dict[str, str]:
    """Write the files of the page to a folder; return their texts by name."""
    files = dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return files


def _run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder; return its standard output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    """The topology produces the results that the page's own test expects."""
    assert list(_save_files(tmp_path)) == ["orders.py", "test_orders.py", "run_orders.py"]
    assert "1 passed" in _run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_program_of_the_page_runs_on_spark(tmp_path: Path) -> None:
    """The program prints the totals that its last comment shows."""
    (expected,) = re.findall(r"print\(.*\)  # (.*)", _save_files(tmp_path)["run_orders.py"])
    assert _run(tmp_path, "run_orders.py").splitlines()[-1] == expected

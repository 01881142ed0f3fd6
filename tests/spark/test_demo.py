"""`make demo`, whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_agrees_with_the_file_and_leaves_a_picture(tmp_path: Path) -> None:
    """It ends with exit code 0, all totals right, and a picture where it was started."""
    done = subprocess.run(
        [sys.executable, "-m", "demo.flights"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all 24,928 totals agree with the file" in done.stdout
    assert (tmp_path / "out" / "flights.png").stat().st_size > 50_000

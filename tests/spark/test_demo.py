"""The complete `make demo`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.alone]

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_agrees_with_pandas_and_writes_pictures(tmp_path: Path) -> None:
    """The exit code is 0, all totals are correct, and the pictures are in the working directory."""
    done = subprocess.run(
        [sys.executable, "-m", "demo.flights", "--months", "1"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every total agrees with pandas: 28,726 rows in all" in done.stdout
    for name in ("flights.png", "planes.png"):
        assert (tmp_path / "out" / name).stat().st_size > 20_000

"""The complete `make demo`."""

from pathlib import Path

import pytest

from tests.spark.programs import Run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.alone]


def test_the_demo_agrees_with_pandas_and_writes_pictures(run_program: Run, tmp_path: Path) -> None:
    """All totals are correct, and the pictures are in the working directory."""
    output = run_program("demo.flights", "--months", "1", folder=tmp_path)
    assert "every total agrees with pandas: 28,726 rows in all" in output
    for name in ("flights.png", "planes.png"):
        assert (tmp_path / "out" / name).stat().st_size > 20_000

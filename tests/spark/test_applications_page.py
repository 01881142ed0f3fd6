"""The page docs/applications.md: its program runs unchanged, and its table has every setting."""

import dataclasses
import re
import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.streams.settings.application import AppSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "applications.md"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_program_runs_unchanged(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output is that in its comment; the program uses the tests' Spark session."""
    del spark
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    (expected,) = re.findall(r"print\(.*\)  # (.*)", program)
    path = tmp_path / "word_count.py"
    path.write_text(program)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == expected


def test_every_setting_is_in_the_table() -> None:
    """The table contains no other settings."""
    table = PAGE.read_text(encoding="utf-8").split("## Settings")[1]
    names = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert names == {field.name for field in dataclasses.fields(AppSettings)}

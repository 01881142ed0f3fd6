"""The page docs/applications.md: its program runs unchanged, and its table has every setting."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import KafkaStreams, StreamsBuilder
from ottla.streams.settings.application import AppSettings
from tests.certificates import self_signed
from tests.spark.programs import Run

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "applications.md"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_program_runs_unchanged(run_program: Run, tmp_path: Path) -> None:
    """The output is that in its comment."""
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    (expected,) = re.findall(r"print\(.*\)  # (.*)", program)
    (tmp_path / "word_count.py").write_text(program, encoding="utf-8")
    assert run_program("word_count.py", folder=tmp_path).splitlines()[-1] == expected


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


def test_the_other_examples_build_applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their imports and options exist; the applications are not started."""
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    _, *examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    certificate = str(self_signed(tmp_path).with_suffix(".crt"))
    names: dict[str, Any] = {}
    for example in examples:
        text = example.replace("/etc/kafka/ca.pem", certificate)
        exec(compile(text, str(PAGE), "exec"), names)
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    assert isinstance(names["build_secured"](builder.build()), KafkaStreams)
    assert isinstance(names["build"](builder.build(), "127.0.0.1:1"), KafkaStreams)
    assert callable(names["read_secured"])

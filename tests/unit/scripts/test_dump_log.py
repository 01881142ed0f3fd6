"""Sentences of `kafka-dump-log` that Apache Kafka's tool lacks; transcripts have the others."""

from pathlib import Path

import pytest

from ottla_scripts import entry
from tests.compat.scripts.transcript import FILES

pytestmark = pytest.mark.slow

_BASE = f"{0:020}"


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("end", "has no complete batch at position 205, which is in the index"),
        ("without-log", f"{_BASE}.log: No such file or directory"),
    ],
)
def test_index_without_its_batch(
    folder: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the position, or the missing segment."""
    path = FILES / "damaged" / folder / f"{_BASE}.index"
    assert entry.run("kafka-dump-log", ["--files", str(path)]) == 1
    assert sentence in capsys.readouterr().err


def test_differences_are_reported_before_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read does not hide the damage of the files before it."""
    names = [
        str(FILES / "damaged" / folder / f"{_BASE}.index") for folder in ("mismatch", "beyond")
    ]
    assert entry.run("kafka-dump-log", ["--files", ",".join(names)]) == 1
    errors = capsys.readouterr().err
    assert "Index offset: 6, log offset: 5" in errors
    assert errors.index("Mismatches in :") < errors.index("Slice from position 5000")


@pytest.mark.parametrize(
    ("position", "byte", "sentence"),
    [
        (116 + 16, 1, "has a batch of format 1 at position 116: `ottla log dump` reads it"),
        (116 + 11, 20, "has a batch of 32 bytes at position 116"),
        (116 + 22, 7, "Unknown compression type id: 7"),
    ],
)
def test_batch_that_cannot_be_printed(
    position: int, byte: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, and the sentence says what the batch has."""
    data = bytearray((FILES / "dumped-0" / f"{_BASE}.log").read_bytes())
    data[position] = byte
    path = tmp_path / f"{_BASE}.log"
    path.write_bytes(data)
    assert entry.run("kafka-dump-log", ["--files", str(path)]) == 1
    assert sentence in capsys.readouterr().err


def test_json_names_trailing_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """With `--output json` the sentence is in the messages."""
    path = FILES / "damaged" / "random" / f"{_BASE}.log"
    assert entry.run("kafka-dump-log", ["--files", str(path), "--output", "json"]) == 0
    assert "Found 50 invalid bytes" in capsys.readouterr().out

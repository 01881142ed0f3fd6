"""Our scripts print what Apache Kafka's tools print: recorded transcripts, replayed without Java."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.testing import Cluster
from ottla.tools.scripts import entry
from tests.compat.scripts.transcript import (
    FOLDER,
    Command,
    normalize,
    read,
    without_brokers_words,
)

TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.txt"))
_OPTIONS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Done(NamedTuple):
    """The result of a script."""

    code: int
    out: str
    errors: str


def run_script(words: list[str], stdin: list[str], monkeypatch: pytest.MonkeyPatch) -> Done:
    """Run a script in this process."""
    data = "".join(f"{line}\n" for line in stdin).encode()
    with monkeypatch.context() as patch:
        streams = {
            name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
            for name in ("stdout", "stderr")
        }
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        code = entry.run(words[0], words[1:])
        for stream in streams.values():
            stream.flush()
    out, errors = (stream.buffer.getvalue().decode() for stream in streams.values())  # type: ignore[attr-defined]
    return Done(code, out, errors)


@pytest.fixture(name="bootstrap")
def _bootstrap() -> Iterator[str]:
    with Cluster(options=_OPTIONS) as cluster:
        yield cluster.bootstrap


@pytest.mark.parametrize("subject", TRANSCRIPTS)
def test_output_is_that_of_apache_kafka(
    subject: str, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output, standard error and exit code of every command are as recorded."""
    differences: list[str] = []
    for command in read(FOLDER / f"{subject}.txt").commands:
        command.write_files(tmp_path)
        done = run_script(command.words(bootstrap, tmp_path), command.stdin, monkeypatch)
        differences += compare(command, done, bootstrap, tmp_path)
    assert not differences, "\n".join(differences)


def compare(command: Command, done: Done, bootstrap: str, folder: Path) -> list[str]:
    """Return the lines that differ from the recorded ones."""
    out = normalize(done.out, bootstrap, folder, command.marks)
    errors = normalize(done.errors, bootstrap, folder, command.marks, out)
    expected = normalize("\n".join(command.out), bootstrap, folder, command.marks)
    expected_errors = normalize("\n".join(command.errors), bootstrap, folder, command.marks)
    if "W" in command.marks:
        out, errors = without_brokers_words(out), without_brokers_words(errors)
        expected = without_brokers_words(expected)
        expected_errors = without_brokers_words(expected_errors)
    if (out, errors, done.code) == (expected, expected_errors, command.code):
        return []
    return [
        command.line,
        *(f"  recorded > {line}" for line in expected),
        *(f"  recorded ! {line}" for line in expected_errors),
        f"  recorded = {command.code}",
        *(f"  ours     > {line}" for line in out),
        *(f"  ours     ! {line}" for line in errors),
        f"  ours     = {done.code}",
    ]

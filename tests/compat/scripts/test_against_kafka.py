"""Our scripts against a running Apache Kafka print what its own tools print."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.compat.scripts.record import places_of
from tests.compat.scripts.test_replay import TRANSCRIPTS, Done, compare, own_words, run_script
from tests.compat.scripts.transcript import FOLDER, Command, read

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]


# Kafka applies a change of metadata a moment after it has confirmed it, and removes a member a
# moment after its consumer has closed. Its own tools start so slowly that they do not notice.
_PATIENCE_S = 15.0
_READS = ("--describe", "--list", "--dry-run", "kafka-get-offsets")
_RESOURCE = re.compile(r"ACLs for resource `(.*)`")


def _may_repeat(command: Command, done: Done) -> bool:
    """Return True if the command changed nothing: it only reads, or it failed.

    A command that must fail may fail for another reason while a deletion, or a token that was just
    created, becomes visible.
    """
    only_reads = any(word in command.line for word in _READS)
    may_fail = command.code == 0 or any(word in command.line for word in ("--delete ", "--hmac "))
    return only_reads or (done.code != 0 and may_fail)


def _entries(output: str) -> set[tuple[str, str]]:
    """Return the entries that kafka-acls has printed, with their resource."""
    resource, entries = "", set()
    for line in output.splitlines():
        header = _RESOURCE.search(line)
        if header is not None:
            resource = header[1]
        elif line.strip().startswith("(principal="):
            entries.add((resource, line.strip()))
    return entries


def _await_listed(words: Sequence[str], done: Done, run: Callable[[list[str]], Done]) -> None:
    """Wait until entries that kafka-acls has just added are listed: the next command reads them."""
    if words[0] != "kafka-acls" or "--add" not in words or done.code != 0:
        return
    listing = [*words[: words.index("--add")], "--list"]
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if _entries(done.out) <= _entries(run(listing).out):
            break


_REPLAY = "tests/compat/scripts/test_replay.py::test_output_is_that_of_apache_kafka[{}]"


def _subjects() -> list[object]:
    """Return all subjects, of which `make test` plays `topics` only.

    The replay of the same transcript to Ottla fails for the same faults of the scripts. kafka-jmx
    is missing: a Java broker serves its beans over RMI, which only Java speaks.
    """
    names = [name for name in TRANSCRIPTS if name not in ("jmx", "topics")]
    nightly = [
        pytest.param(name, marks=pytest.mark.nightly(_REPLAY.format(name))) for name in names
    ]
    return ["topics", *nightly]


@pytest.mark.parametrize("subject", _subjects())
def test_output_against_apache_kafka_is_that_of_its_tools(
    subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the broker's own words are compared, too."""
    transcript = read(FOLDER / f"{subject}.txt")
    differences: list[str] = []

    def run(words: list[str], data: bytes = b"") -> Done:
        return run_script(words, data, monkeypatch)

    with places_of(transcript, tmp_path) as places:
        for command in transcript.commands:
            # Ottla's broker lacks the feature, and some of our scripts lack it, too.
            if "K" in command.marks:
                continue
            command.marks = command.marks.replace("W", "")
            command.prepare(places)
            monkeypatch.setenv("KAFKA_OPTS", places.fill(command.java_options))
            deadline = time.monotonic() + _PATIENCE_S
            while True:
                done = run(own_words(command, places), command.input)
                places.remember_tokens(done.out)
                unequal = compare(command, done, places)
                if not unequal or not _may_repeat(command, done) or time.monotonic() > deadline:
                    break
            differences += unequal
            _await_listed(command.command_line(places), done, run)
    assert not differences, "\n".join(differences)

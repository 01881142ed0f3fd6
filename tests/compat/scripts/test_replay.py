"""Our scripts print what Apache Kafka's tools print: recorded transcripts, replayed without Java."""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry
from tests.compat import zookeeper
from tests.compat.scripts.classes import USERS
from tests.compat.scripts.transcript import (
    FOLDER,
    PROTOCOLS,
    Command,
    Places,
    Transcript,
    normalize,
    read,
    without_brokers_words,
)
from tests.runs import needs

pytestmark = pytest.mark.slow

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


def run_script(command_line: list[str], data: bytes, monkeypatch: pytest.MonkeyPatch) -> Done:
    """Run a script in this process."""
    with monkeypatch.context() as patch:
        streams = {
            name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
            for name in ("stdout", "stderr")
        }
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        code = entry.run(command_line[0], command_line[1:])
        for stream in streams.values():
            stream.flush()
    out, errors = (stream.buffer.getvalue().decode() for stream in streams.values())  # type: ignore[attr-defined]
    return Done(code, out, errors)


@contextmanager
def places_of(transcript: Transcript, folder: Path) -> Iterator[Places]:
    """Run the clusters of a transcript until the end of the block."""
    with ExitStack() as stack:
        options = _OPTIONS | transcript.options(folder, "broker")
        if transcript.uses("$J"):
            options["metrics.listener"] = "127.0.0.1:0"
        listeners = transcript.listeners(folder)
        if listeners:
            secured = [f"{PROTOCOLS[word]}://{address}" for word, address in listeners.items()]
            options["listeners"] = ",".join(["PLAINTEXT://127.0.0.1:0", *secured])
        cluster = stack.enter_context(Cluster(options=options))
        second = jmx_url = ""
        if transcript.uses("$C"):
            second = stack.enter_context(Cluster(options=_OPTIONS)).bootstrap
        if transcript.uses("$J"):
            address = cluster.node(cluster.brokers[0]).monitoring_address
            assert address is not None
            jmx_url = f"service:jmx:rmi:///jndi/rmi://{address[0]}:{address[1]}/jmxrmi"
        ensemble = ""
        if transcript.uses("$Z"):
            # Only a real ZooKeeper has access control lists.
            needs.require("java")
            ensemble = stack.enter_context(zookeeper.running(folder / "zookeeper", USERS))
        yield Places(
            cluster.bootstrap,
            folder,
            second,
            jmx_url,
            authenticated=listeners.get("$L", ""),
            zookeeper=ensemble,
            protected=listeners.get("$P", ""),
        )


@pytest.mark.parametrize("subject", TRANSCRIPTS)
def test_output_is_that_of_apache_kafka(
    subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output, standard error and exit code of every command are as recorded."""
    transcript = read(FOLDER / f"{subject}.txt")
    differences: list[str] = []
    with places_of(transcript, tmp_path) as places:
        for command in transcript.commands:
            if {"K", "A"} & set(command.marks):
                continue
            command.prepare(places)
            monkeypatch.setenv("KAFKA_OPTS", places.fill(command.java_options))
            done = run_script(own_words(command, places), command.input, monkeypatch)
            places.remember_tokens(done.out)
            differences += compare(command, done, places)
    assert not differences, "\n".join(differences)


def own_words(command: Command, places: Places) -> list[str]:
    """Return the command line of our script."""
    return [*command.command_line(places), *(["--until-end"] if "E" in command.marks else [])]


def _with_doubles(lines: list[str], expected: list[str]) -> list[str]:
    """Return lines with N+ for the numbers that are doubles in the recorded ones.

    The shortest form of a double may have few decimals, such as 12.5.
    """
    result = list(lines)
    for at, (line, recorded) in enumerate(zip(lines, expected, strict=False)):
        pattern = re.escape(recorded).replace(re.escape("N+"), r"N[1-4+]")
        if "N+" in recorded and re.fullmatch(pattern, line):
            result[at] = recorded
    return result


def compare(command: Command, done: Done, places: Places) -> list[str]:
    """Return the lines that differ from the recorded ones."""
    out = normalize(done.out, places, command.marks)
    errors = normalize(done.errors, places, command.marks, out)
    expected = normalize("\n".join(command.out), places, command.marks)
    expected_errors = normalize("\n".join(command.errors), places, command.marks)
    if "W" in command.marks:
        out, errors = without_brokers_words(out), without_brokers_words(errors)
        expected = without_brokers_words(expected)
        expected_errors = without_brokers_words(expected_errors)
    out = _with_doubles(out, expected)
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

"""Search for differences from Kafka Streams: `python -m tests.streams.recorded.compare [SEED
[ROUNDS [NAME…]]]`.

Generates scenarios and inputs from a seed. Each is played on Kafka Streams' own TopologyTestDriver
(one Java process, as in record.py) and on ours, and the records of each event are compared. A
difference is minimized and printed with its seed; record.py describes how to store it.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NamedTuple, Protocol

from tests.streams.playing import play
from tests.streams.recorded import inputs
from tests.streams.recorded.record import compiled

_ROUNDS = 20


class Scenario(NamedTuple):
    """A scenario to play: a name with optional parameters, and events."""

    line: str
    events: list[str]


class Java(AbstractContextManager["Java"]):
    """A Java process that plays scenarios on Kafka Streams."""

    def __enter__(self) -> "Java":
        self._scratch = tempfile.TemporaryDirectory()
        command = compiled(self._scratch.name)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
        self._scratch.cleanup()

    def play(self, scenario: Scenario) -> list[str]:
        """Return the output of a scenario."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\n".join([f"scenario {scenario.line}", *scenario.events, "play", ""]))
        stdin.flush()
        lines: list[str] = []
        for each in stdout:
            if each == "end\n":
                return [line for line in lines if not line.startswith("scenario ")]
            lines.append(each.rstrip("\n"))
        raise AssertionError(f"Java ended: {scenario}")


class Player(Protocol):
    """Kafka Streams, running or recorded."""

    def play(self, scenario: Scenario) -> list[str]:
        """Return the output of a scenario."""


def difference(java: Player, scenario: Scenario) -> str | None:
    """Return the first lines that differ, or None."""
    java_lines, our_lines = java.play(scenario), play(scenario.line, scenario.events)
    expected, actual = _plain(java_lines), _plain(our_lines)
    for number in range(max(len(expected), len(actual))):
        lines = [each[number] if number < len(each) else "(end)" for each in (expected, actual)]
        if lines[0] != lines[1]:
            failures = [each for each in (*_failed(java_lines), *_failed(our_lines))]
            return "\n".join([f"Kafka: {lines[0]}\nours:  {lines[1]}", *failures])
    return None


def _failed(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("failed")]


def _plain(lines: list[str]) -> list[str]:
    """Normalize messages of failures and the order of simultaneous punctuators."""
    plain = [line if not line.startswith("failed") else "failed" for line in lines]
    ticks: list[str] = []
    texts: list[str] = []
    for each in (*plain, ""):
        if "'tick" in each:
            ticks.append(each)
            continue
        texts += [
            *sorted(ticks),
            re.sub(r"extractor class: [^)]*", "extractor class: function", each),
        ]
        ticks = []
    return texts[:-1]


def smallest(scenario: Scenario, differs: Callable[[Scenario], bool]) -> Scenario:
    """Remove events, many at once first, as long as there is a difference."""
    events, size = scenario.events, max(1, len(scenario.events) // 2)
    while size:
        at = 0
        while at < len(events):
            fewer = events[:at] + events[at + size :]
            if fewer and differs(Scenario(scenario.line, fewer)):
                events = fewer
            else:
                at += size
        size //= 2
    return Scenario(scenario.line, events)


def main(seed: str = "", rounds: str = str(_ROUNDS), *names: str) -> None:
    """Compare scenarios; the exit status is 1 if there was a difference."""
    seed = seed or str(time.time_ns())
    played, differences = 0, 0
    with Java() as java:
        for number in range(int(rounds)):
            for name in names or inputs.NAMES:
                own = f"{seed}-{number}"
                scenario = Scenario(*inputs.scenario(name, random.Random(f"{own} of {name}")))
                played += 1
                if difference(java, scenario) is None:
                    continue
                differences += 1
                small = smallest(scenario, lambda each: difference(java, each) is not None)
                _report(name, own, small, difference(java, small))
    print(f"seed {seed}: {played} inputs, {differences} differences")
    sys.exit(differences > 0)


def _report(name: str, seed: str, scenario: Scenario, result: str | None) -> None:
    print(f"--- {name}, seed {seed}\nscenario {scenario.line}")
    print("\n".join(scenario.events))
    print(result, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

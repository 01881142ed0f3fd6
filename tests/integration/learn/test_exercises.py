"""Exercises: the goal is not reached at the beginning, and is after the commands of the last hint."""

import threading
from collections.abc import Callable

import pytest

from ottla.learn.course import LESSONS
from ottla.learn.events import LANGUAGES
from ottla.learn.exercises import watching
from ottla.learn.exercises.catalogue import EXERCISES, prepared
from ottla.testing.cluster import Cluster
from ottla.tools import main

# The commands that solve an exercise, if the last hint is not such a command.
SOLUTIONS = {
    "isr-to-three": "topic config isr-to-three --unset follower.replication.throttled.replicas",
    "blocking-record": "group reset billing --topic blocking-record --to 18 --execute",
}
WRONG = {
    "blocking-record": "group reset billing --topic blocking-record --to 19 --execute",
    "from-yesterday": "group reset report --topic from-yesterday --to start --execute",
    "three-at-once": "topic add-partitions three-at-once --total 2",
}


def solution_of(name: str) -> str:
    """Return the command line, without `ottla`."""
    hint = EXERCISES[name].hints[-1].en
    return SOLUTIONS.get(name) or hint.strip("`").removeprefix("ottla ")


def typing(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Callable[[str], int]:
    """Return a function that runs a command line against a cluster."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
    return lambda line: main.run(line.split())


@pytest.mark.parametrize("name", EXERCISES)
def test_goal_is_reached_by_the_commands_of_the_last_hint(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check reads the cluster, so another way counts as well; a wrong one does not."""
    with prepared(EXERCISES[name]) as (cluster, check):
        run = typing(monkeypatch, cluster)
        assert check() is not None
        if name in WRONG:
            assert run(WRONG[name]) == 0
            assert check() is not None
        assert run(solution_of(name)) == 0
        wait_until(lambda: check() is None)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; the cluster needs a moment for some goals."""
    for _ in range(400):
        if condition():
            return
        threading.Event().wait(0.05)
    pytest.fail("the goal was not reached")


def test_watch_shows_hints_and_ends_with_the_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each hint is shown once; the state is printed when it changes."""
    lines = iter(["h\n", "h\n", "h\n", None, None])

    def read_line(timeout_s: float) -> str | None:
        line = next(lines)
        if line is None:
            address = capsys_text(capsys).partition("OTTLA_BOOTSTRAP=")[2].partition("`")[0]
            monkeypatch.setenv("OTTLA_BOOTSTRAP", address)
            assert main.run(["topic", "add-partitions", "three-at-once", "--total", "3"]) == 0
        return line

    seen: list[str] = []

    def capsys_text(capture: pytest.CaptureFixture[str]) -> str:
        seen.append(capture.readouterr().err)
        return "".join(seen)

    assert watching.watch(EXERCISES["three-at-once"], "en", read_line)
    text = capsys_text(capsys)
    assert text.count("Not yet: Partitions: 1.") == 1
    parts = ["A partition has one reader", "add-partitions three-at-once", "the last hint", "Done:"]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)


@pytest.mark.parametrize("line", ["q\n", ""])
def test_watch_ends_on_request(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The goal is not reached; the end of the input is a request, too."""
    assert not watching.watch(EXERCISES["keep-a-day"], "en", lambda timeout_s: line)
    assert "Ended before the goal was reached." in capsys.readouterr().err


def test_there_are_twelve_exercises_in_both_languages() -> None:
    """Names differ from those of lessons, and each has a hint."""
    assert len(EXERCISES) >= 12
    assert not EXERCISES.keys() & LESSONS.keys()
    for exercise in EXERCISES.values():
        assert len({exercise.task.render(language) for language in LANGUAGES}) == 2
        assert exercise.hints


def test_exercises_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With their tasks."""
    assert main.run(["learn", "--exercises", "--language", "en"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in EXERCISES)

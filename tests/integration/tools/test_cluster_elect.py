"""`ottla cluster elect`: preferred and unclean leaders."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.testing import Cluster

_TRIES = 2000


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(_TRIES):
        if condition():
            return
    raise AssertionError("the condition has not become true")


def _partition(run: Any, topic: str) -> dict[str, Any]:
    (row,) = run("topic", "describe", topic, "--output", "json").json
    return dict(row)


def _prefer_follower(run: Any, topic: str) -> tuple[int, int]:
    """Reverse the replicas of a partition with two; return its leader and the preferred one."""
    leader, preferred = _partition(run, topic)["replicas"]
    to = f"{preferred},{leader}"
    assert run("cluster", "move", topic, "--to", to, "--execute").code == 0
    _until(lambda: _partition(run, topic)["replicas"] == [preferred, leader])
    return leader, preferred


def test_preferred_leader_is_elected(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changes without --execute; then the first replica is the leader."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=2)
        cluster.wait_in_sync("a")
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        leader, preferred = _prefer_follower(run, "a")
        dry = run("cluster", "elect", "a", "--output", "json")
        expected = {"topic": "a", "partition": 0, "leader": leader, "to": preferred, "problem": ""}
        assert dry.json == [{**expected, "executed": False}]
        assert "Dry run" in dry.errors
        assert _partition(run, "a")["leader"] == leader
        done = run("cluster", "elect", "--all", "--execute", "--output", "json")
        assert (done.code, done.json) == (0, [{**expected, "executed": True}])
        _until(lambda: _partition(run, "a")["leader"] == preferred)
        again = run("cluster", "elect", "a:0", "--execute")
        assert (again.code, again.out) == (0, b"")
        assert "led by their preferred replica" in again.errors


def test_preferred_leader_that_is_not_in_sync_is_a_problem(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dry run says so; the exit code of the execution is 1, and the leader remains."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=2)
        cluster.wait_in_sync("a")
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        leader, preferred = _prefer_follower(run, "a")
        cluster.kill(preferred)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        _until(lambda: _partition(run, "a")["isr"] == [leader])
        dry = run("cluster", "elect", "a")
        assert dry.code == 0
        assert f"broker {preferred} is not in sync" in dry.out.decode()
        done = run("cluster", "elect", "a", "--execute", "--output", "json")
        (row,) = done.json
        assert (done.code, row["executed"], bool(row["problem"])) == (1, False, True)
        assert _partition(run, "a")["leader"] == leader


def test_unclean_leader_is_elected(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition whose ISR is down gets another replica as its leader."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=2)
        cluster.wait_in_sync("a")
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        leader, follower = _partition(run, "a")["replicas"]
        assert "have a leader" in run("cluster", "elect", "a", "--unclean", "--execute").errors
        cluster.kill(follower)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        _until(lambda: _partition(run, "a")["isr"] == [leader])
        cluster.kill(leader)
        cluster.restart(follower)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        _until(lambda: bool(run("cluster", "elect", "a", "--unclean", "--output", "json").json))
        (row,) = run("cluster", "elect", "a", "--unclean", "--output", "json").json
        assert (row["leader"], row["to"], row["executed"]) == (None, None, False)
        done = run("cluster", "elect", "a", "--unclean", "--execute")
        assert (done.code, done.rows) == (0, [["a", "0", "-", "-", "-"]])
        assert cluster.leader("a") == follower


def test_partition_without_running_replicas_is_a_problem(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither kind of election gives it a leader."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=1)
        owner = cluster.leader("a")
        cluster.kill(owner)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        line = ("cluster", "elect", "a", "--unclean")
        _until(lambda: bool(run(*line, "--output", "json").json))
        assert "none of its replicas is running" in run(*line).out.decode()
        done = run(*line, "--execute", "--output", "json")
        (row,) = done.json
        assert (done.code, row["executed"], bool(row["problem"])) == (1, False, True)


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        ([], "Name topics or partitions, as in orders or orders:0,1, or --all"),
        (["a", "--all"], "or --all"),
        (["none"], "There is no topic 'none'"),
        (["a:7"], "has no partition 7"),
        (["a:x"], "use the form orders:0,1"),
    ],
)
def test_wrong_election_is_a_sentence(run: Any, command_line: list[str], sentence: str) -> None:
    """No leader is elected."""
    run("topic", "create", "a")
    done = run("cluster", "elect", *command_line, "--execute")
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors

"""`ottla cluster move` with plans: files, limits of traffic, progress, cancellation."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import configs, replicas
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

# A replica that joins while another one does may need five seconds.
_PATIENCE_S = 30.0
_BROKER_LIMIT = "leader.replication.throttled.rate"
_TOPIC_LIMIT = "leader.replication.throttled.replicas"


@pytest.fixture(name="cluster")
def _cluster(run: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Yield a cluster of three brokers, which `run` uses."""
    with Cluster(brokers=3) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        yield cluster


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition has not become true"


def _replicas(run: Any, topic: str) -> list[list[int]]:
    return [row["replicas"] for row in run("topic", "describe", topic, "--output", "json").json]


def _plan(path: Path, *rows: tuple[Any, ...], **fields: Any) -> str:
    names = ("topic", "partition", "replicas")
    partitions = [{**dict(zip(names, row, strict=True)), **fields} for row in rows]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def _limits(brokers: Brokers) -> list[str]:
    resources = [(configs.ResourceType.TOPIC, "a", _TOPIC_LIMIT)]
    resources += [(configs.ResourceType.BROKER, str(n), _BROKER_LIMIT) for n in brokers.node_ids()]
    return [
        entry.value
        for kind, name, option in resources
        for entry in configs.describe_config(brokers, configs.Resource(kind, name), names=[option])
        if entry.value and entry.source is not configs.ConfigSource.DEFAULT_CONFIG
    ]


def test_plan_is_saved_executed_and_reverted(run: Any, cluster: Cluster, tmp_path: Path) -> None:
    """--over keeps the number of replicas; the saved files move the replicas there and back."""
    cluster.create_topic("a", partitions=6, replication_factor=1)
    run("cluster", "move", "a", "--to", "1", "--execute")
    _until(lambda: _replicas(run, "a") == [[1]] * 6)
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    line = ("cluster", "move", "a", "--over", "1,2,3", "--save", there, "--save-current", back)
    dry = run(*line, "--output", "json")
    assert [row["to"] for row in dry.json] == [[2], [3], [2], [3]]
    assert "Dry run" in dry.errors
    assert _replicas(run, "a") == [[1]] * 6
    assert run("cluster", "move", "--plan", there, "--verify").code == 1
    done = run("cluster", "move", "--plan", there, "--execute", "--output", "json")
    assert all(row["executed"] for row in done.json)
    _until(lambda: run("cluster", "move", "--plan", there, "--verify").code == 0)
    assert _replicas(run, "a") == [[1], [2], [3], [1], [2], [3]]
    assert "there already" in run("cluster", "move", "--plan", there, "--execute").errors
    run("cluster", "move", "--plan", back, "--execute")
    _until(lambda: run("cluster", "move", "--plan", back, "--verify").code == 0)
    assert _replicas(run, "a") == [[1]] * 6


def test_limit_of_traffic_is_removed_when_the_plan_is_complete(
    run: Any, cluster: Cluster, tmp_path: Path
) -> None:
    """--verify shows the progress; only with --execute it removes the limit."""
    cluster.create_topic("a")
    run("cluster", "move", "a", "--to", "1", "--execute")
    _until(lambda: _replicas(run, "a") == [[1]])
    plan = _plan(tmp_path / "plan", ("a", 0, [2]))
    assert run("cluster", "move", "--plan", plan, "--throttle", "1000000").code == 0
    with cluster.admin() as brokers:
        assert _limits(brokers) == []
        line = ("--throttle", "1000000", "--execute")
        assert "--verify" in run("cluster", "move", "--plan", plan, *line).errors
        _until(lambda: _limits(brokers) == ["0:1", "1000000", "1000000"])
        _until(lambda: run("cluster", "move", "--plan", plan, "--verify").code == 0)
        assert _limits(brokers) == ["0:1", "1000000", "1000000"]
        done = run("cluster", "move", "a", "--verify", "--execute", "--output", "json")
        row = {"topic": "a", "partition": 0, "state": "complete", "replicas": [2], "to": [2]}
        assert (done.code, done.json) == (0, [row])
        _until(lambda: _limits(brokers) == [])


def test_limits_are_set_on_brokers_that_run(run: Any, cluster: Cluster) -> None:
    """A broker that has died is the reason of many moves."""
    cluster.create_topic("a", partitions=1, replication_factor=1)
    # Another broker than the controller may not know the topic yet.
    _until(lambda: run("cluster", "move", "a", "--to", "2,3", "--execute").code == 0)
    _until(lambda: _replicas(run, "a") == [[2, 3]])
    # A replica that is listed already may still be added.
    cluster.wait_in_sync("a")
    cluster.kill(3)
    line = ("cluster", "move", "a", "--to", "2,1", "--throttle", "50000000", "--execute")
    # The metadata contains the broker until its session ends.
    _until(lambda: run(*line).code == 0)
    with cluster.admin() as brokers:
        _until(lambda: _limits(brokers) == ["0:2,0:3", "50000000", "50000000"])
    _until(lambda: _replicas(run, "a") == [[2, 1]])


def test_plan_is_cancelled(run: Any, cluster: Cluster, tmp_path: Path) -> None:
    """A limit of one byte per second keeps the replica moving until the plan is cancelled."""
    cluster.create_topic("a")
    run("cluster", "move", "a", "--to", "1", "--execute")
    _until(lambda: _replicas(run, "a") == [[1]])
    produce(cluster, "a", [b"x" * 100_000] * 20)
    plan = _plan(tmp_path / "plan", ("a", 0, [2]))
    run("cluster", "move", "--plan", plan, "--throttle", "1", "--execute")
    verified = run("cluster", "move", "--plan", plan, "--verify", "--execute", "--output", "json")
    assert (verified.code, verified.json[0]["state"]) == (1, "moving")
    assert "limits of traffic remain" in verified.errors
    dry = run("cluster", "move", "--plan", plan, "--cancel", "--output", "json")
    assert [(row["topic"], row["executed"]) for row in dry.json] == [("a", False)]
    with cluster.admin() as brokers:
        assert ("a", 0) in replicas.list_partition_reassignments(brokers)
        done = run("cluster", "move", "--plan", plan, "--cancel", "--execute")
        assert (done.code, len(done.rows)) == (0, 1)
        assert replicas.list_partition_reassignments(brokers) == {}
        _until(lambda: _limits(brokers) == [])
    assert _replicas(run, "a") == [[1]]


def test_plan_names_log_directories(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica is moved to another directory of its broker, and the plan is then complete."""
    folders = [str(tmp_path / name) for name in ("one", "two")]
    with Cluster(options={"log.dirs": ",".join(folders)}) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        cluster.create_topic("a")
        produce(cluster, "a", [b"1"])
        (row,) = run("log", "dirs", "a", "--output", "json").json
        (other,) = {*folders} - {row["directory"]}
        plan = _plan(tmp_path / "plan", ("a", 0, [1]), log_dirs=[other])
        dry = run("cluster", "move", "--plan", plan, "--output", "json")
        assert dry.json[0]["directories"] == [f"1:{other}"]
        assert run("cluster", "move", "--plan", plan, "--verify").rows[0][2] == "different"
        done = run("cluster", "move", "--plan", plan, "--throttle", "100000000", "--execute")
        assert done.code == 0
        _until(lambda: run("cluster", "move", "--plan", plan, "--verify", "--execute").code == 0)
        (row,) = run("log", "dirs", "a", "--output", "json").json
        assert row["directory"] == other


@pytest.mark.parametrize(
    ("rows", "command_line", "sentence"),
    [
        ([("a", 0, [7])], [], "Broker 7 is not running"),
        ([("a", 9, [1])], [], "Unable to find partition: a-9"),
        ([("none", 0, [1])], [], "Topic none not found"),
        ([("a", 0, [1, 1])], [], "a-0 contains multiple entries for 1"),
        ([("a", 0, [])], [], "Partition replica list cannot be empty"),
        ([("a", 0, "x")], [], 'a-0 needs a field "replicas"'),
        ([], [], "cannot be empty"),
        ([("a", 0, [1])], ["a"], "leave out the topics"),
        ([("a", 0, [1])], ["--to", "1"], "Give either --to"),
        ([("a", 0, [1])], ["--cancel", "--verify"], "Give either --to"),
        ([("a", 0, [1])], ["--cancel", "--throttle", "5"], "--throttle cannot be combined"),
        ([("a", 0, [1])], ["--throttle", "0"], "0 is not in the range x>=1"),
        ([("a", 0, [1])], ["--save", "PLAN"], "exists: name another file"),
        ([("a", 0, [1])], ["--save", "NEW", "--save-current", "NEW"], "need different files"),
    ],
)
def test_wrong_plan_moves_nothing(
    run: Any,
    ottla_cluster: Cluster,
    tmp_path: Path,
    rows: list[tuple[Any, ...]],
    command_line: list[str],
    sentence: str,
) -> None:
    """The sentence names the option or the partition."""
    run("topic", "create", "a")
    plan = _plan(tmp_path / "plan", *rows)
    places = {"PLAN": plan, "NEW": str(tmp_path / "new")}
    line = [places.get(word, word) for word in command_line]
    done = run("cluster", "move", *line, "--plan", plan, "--execute")
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]
    with ottla_cluster.admin() as brokers:
        assert replicas.list_partition_reassignments(brokers) == {}


def test_file_that_is_no_plan_is_a_sentence(run: Any, tmp_path: Path) -> None:
    """The sentence shows the JSON that is needed."""
    (tmp_path / "plan").write_text("[1")
    done = run("cluster", "move", "--plan", str(tmp_path / "plan"), "--execute")
    assert (done.code, done.out) == (1, b"")
    assert "is not a valid JSON" in done.errors
    assert '"replicas": [1, 2]' in done.errors


def test_spread_needs_as_many_brokers_as_replicas(run: Any, cluster: Cluster) -> None:
    """A topic keeps its number of replicas, so it cannot be spread over fewer brokers."""
    cluster.create_topic("a", replication_factor=3)
    done = run("cluster", "move", "a", "--over", "1,2", "--execute")
    assert (done.code, done.out) == (1, b"")
    assert "Replication factor: 3 larger than available brokers: 2" in done.errors

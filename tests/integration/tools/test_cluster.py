"""`ottla cluster …`, `ottla topic trim`, positions of `ottla group reset`, and --explain."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import offsets, replicas
from ottla.client.admin.cluster import describe_cluster
from ottla.testing import Cluster
from ottla.tools.cluster import health
from tests.integration.tools.test_mirror import produce


def test_info_shows_brokers(run: Any, ottla_cluster: Cluster) -> None:
    """Each broker has its leaders and replicas; JSON has the cluster's id."""
    run("topic", "create", "a", "--partitions", "2")
    (row,) = run("cluster", "info").rows
    assert (row[0], row[3:]) == ("1", ["true", "2", "2"])
    facts = run("cluster", "info", "--output", "json").json
    assert (facts["topics"], facts["partitions"], facts["controller"]) == (1, 2, 1)
    assert len(facts["cluster_id"]) == 22


def test_healthy_cluster(run: Any) -> None:
    """Every check is ok, and the exit code is 0."""
    run("topic", "create", "a")
    done = run("cluster", "health", "--output", "json")
    assert done.code == 0
    assert {row["state"] for row in done.json} == {"ok"}


def test_broker_that_is_down_is_reported(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partitions are under-replicated, and each problem has a remedy."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=2, config={"min.insync.replicas": "2"})
        cluster.kill(3 - cluster.leader("a"))
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        for _ in range(400):
            done = run("cluster", "health", "--output", "json")
            failed = {row["check"]: row for row in done.json if row["state"] == "fail"}
            if "replicas" in failed and "brokers" in failed:
                break
    assert done.code == 1
    assert {"brokers", "replicas", "minimum ISR"} <= set(failed)
    assert all(row["remedy"] for row in failed.values())


def test_broker_that_has_just_died_delays_no_report() -> None:
    """Until its session ends it counts as running, but it is not waited for as a leader would be."""
    with Cluster(brokers=2) as cluster, cluster.admin() as brokers:
        described = describe_cluster(brokers)
        cluster.kill(2)
        (row,) = health._directories(brokers, described)
        assert brokers.timeout_s <= 2
    assert row["state"] == "fail"
    assert row["found"].startswith("broker 2: ")
    assert row["remedy"].startswith("start the broker")


def test_long_lists_are_cut() -> None:
    """Five names are enough to find the problem."""
    row = health._listed("fail", "leaders", [f"a-{n}" for n in range(9)], "without a leader", "x")
    assert row["found"] == "9 without a leader: a-0, a-1, a-2, a-3, a-4 and 4 more"


def test_move_plans_and_executes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first broker rotates; nothing moves without --execute."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", partitions=2, replication_factor=1)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        plan = run("cluster", "move", "a", "--to", "1,2", "--output", "json")
        assert [row["to"] for row in plan.json] == [[1, 2], [2, 1]]
        assert "Dry run" in plan.errors
        done = run("cluster", "move", "a", "--to", "1,2", "--execute", "--output", "json")
        assert all(row["executed"] for row in done.json)
        for _ in range(400):
            if run("cluster", "move", "--output", "json").json == []:
                break
        rows = run("topic", "describe", "a", "--output", "json").json
        assert [sorted(row["replicas"]) for row in rows] == [[1, 2], [1, 2]]
        assert run("cluster", "move", "a", "--cancel", "--execute").errors.startswith("These partitions are not moving")  # fmt: skip


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["a", "--to", "7"], "Broker 7 is not running"),
        (["a", "--to", "x"], "not a list of broker ids"),
        (["a", "--to", "1,1"], "names a broker twice"),
        (["a:9", "--to", "1"], "has no partition 9"),
        (["a:x", "--to", "1"], "use the form orders:0,1"),
        (["a"], "Give either --to ID,… or --cancel"),
        (["--to", "1"], "Name the topics or partitions"),
    ],
)
def test_wrong_move_is_a_sentence(
    run: Any, ottla_cluster: Cluster, command_line: list[str], sentence: str
) -> None:
    """Nothing is moved."""
    run("topic", "create", "a")
    done = run("cluster", "move", *command_line, "--execute")
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    with ottla_cluster.admin() as brokers:
        assert replicas.list_partition_reassignments(brokers) == {}


@pytest.mark.parametrize(
    ("position", "start"), [("2", 2), ("end", 4), ("-1", 3), ("+1", 1), ("@1970-01-01", 0)]
)
def test_trim_deletes_before_a_position(
    run: Any, ottla_cluster: Cluster, position: str, start: int
) -> None:
    """A dry run deletes nothing; the result has the new start."""
    run("topic", "create", "a")
    produce(ottla_cluster, "a", [b"1", b"2", b"3", b"4"])
    dry = run("topic", "trim", "a", "--to", position, "--dry-run", "--output", "json")
    assert dry.json[0]["new_start_offset"] == start
    assert run("topic", "describe", "a", "--output", "json").json[0]["log_start_offset"] == 0
    done = run("topic", "trim", "a", "--to", position, "--yes", "--output", "json")
    assert (done.json[0]["new_start_offset"], done.json[0]["deleted"]) == (start, start)


def _offsets_file(folder: Path, *rows: tuple[Any, ...]) -> str:
    fields = ("topic", "partition", "offset")
    partitions = [dict(zip(fields, row, strict=True)) for row in rows]
    path = folder / "offsets.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_trim_reads_offsets_from_a_file(run: Any, ottla_cluster: Cluster, tmp_path: Path) -> None:
    """Each partition has its offset, in the JSON of kafka-delete-records; -1 is the end."""
    run("topic", "create", "b")
    for topic in ("a", "b"):
        produce(ottla_cluster, topic, [b"1", b"2", b"3"])
    path = _offsets_file(tmp_path, ("b", 0, -1), ("a", 0, 2))
    dry = run("topic", "trim", "--file", path, "--dry-run", "--output", "json")
    assert [(row["topic"], row["new_start_offset"]) for row in dry.json] == [("a", 2), ("b", 3)]
    assert run("topic", "describe", "a", "--output", "json").json[0]["log_start_offset"] == 0
    done = run("topic", "trim", "--file", path, "--yes")
    assert done.rows == [["a", "0", "0", "2", "2"], ["b", "0", "0", "3", "3"]]
    assert run("topic", "describe", "b", "--output", "json").json[0]["log_start_offset"] == 3
    path = _offsets_file(tmp_path, ("a", 0, 1))
    done = run("topic", "trim", "--file", path, "--yes", "--output", "json")
    assert (done.json[0]["new_start_offset"], done.json[0]["deleted"]) == (2, 0)


@pytest.mark.parametrize(
    ("rows", "command_line", "sentence"),
    [
        ([("a", 0, 2), ("a", 0, 9)], [], "duplicate topic partitions: a-0"),
        ([("a", 0, 2), ("a", 1, 0)], [], "has no partition 1"),
        ([("a", 0, 9)], [], "a-0 has no offset 9: use 0 to 3, or -1 for the end"),
        ([("a", 0, -2)], [], "a-0 has no offset -2"),
        ([("none", 0, 1)], [], "There is no topic 'none'"),
        ([("a", 0, "x")], [], 'needs a field "offset" (int64)'),
        ([], [], "names no partitions"),
        ([("a", 0, 2)], ["a"], "leave out the others"),
        ([("a", 0, 2)], ["--to", "2"], "leave out the others"),
    ],
)
def test_wrong_offsets_of_a_file_delete_nothing(
    run: Any,
    ottla_cluster: Cluster,
    tmp_path: Path,
    rows: list[tuple[Any, ...]],
    command_line: list[str],
    sentence: str,
) -> None:
    """All offsets are checked before the first record is deleted."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3"])
    path = _offsets_file(tmp_path, *rows)
    done = run("topic", "trim", *command_line, "--file", path, "--yes")
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert run("topic", "describe", "a", "--output", "json").json[0]["log_start_offset"] == 0


def test_trim_shows_the_json_that_it_needs(run: Any, tmp_path: Path) -> None:
    """A file that is no JSON is a sentence with an example."""
    (tmp_path / "offsets").write_text("[1")
    done = run("topic", "trim", "--file", str(tmp_path / "offsets"))
    assert (done.code, done.out) == (1, b"")
    assert "is not a valid JSON" in done.errors
    assert '"offset": 5' in done.errors


def test_trim_needs_a_position(run: Any) -> None:
    """Neither a topic nor a position alone is enough."""
    run("topic", "create", "a")
    for command_line in ([], ["a"], ["--to", "end"]):
        done = run("topic", "trim", *command_line)
        assert (done.code, done.out) == (2, b"")
        assert "Name a topic and --to POSITION, or a file with --file FILE" in done.errors


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        (["--to", "start"], 0),
        (["--to", "-1"], 3),
        (["--to", "+1"], 1),
        (["--to-datetime", "2100-01-01"], 4),
        (["--to-group", "other"], 2),
        (["--from-file", "FILE"], 3),
    ],
)
def test_reset_to_other_offsets_moves_a_group(
    run: Any, ottla_cluster: Cluster, tmp_path: Path, command_line: list[str], expected: int
) -> None:
    """Without --execute nothing is committed; with it the group is at the new offset."""
    produce(ottla_cluster, "a", [b"1", b"2", b"3", b"4"])
    (tmp_path / "plan").write_text("a 0 3\n\n")
    with ottla_cluster.admin() as brokers:
        for name, offset in (("g", 4), ("other", 2)):
            offsets.commit_offsets(brokers, name, {("a", 0): offsets.CommittedOffset(offset)})
        line = [word.replace("FILE", str(tmp_path / "plan")) for word in command_line]
        assert "Dry run" in run("group", "reset", "g", *line).errors
        assert offsets.committed_offsets(brokers, "g")["a", 0].offset == 4
        done = run("group", "reset", "g", *line, "--execute", "--output", "json")
        assert done.json[0]["new_offset"] == expected
        assert offsets.committed_offsets(brokers, "g")["a", 0].offset == expected


def test_reset_of_a_new_group_needs_a_topic(run: Any, ottla_cluster: Cluster) -> None:
    """With --topic, or with another group's offsets, a group can be prepared before it starts."""
    produce(ottla_cluster, "a", [b"1", b"2"])
    done = run("group", "reset", "new", "--to", "end", "--execute")
    assert "name the topic with --topic" in done.errors
    assert run("group", "reset", "new", "--to", "end", "--topic", "a:0", "--execute").code == 0


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        ([], "--shift-by, --from-file, --to-group"),
        (["--to", "1", "--to-group", "x"], "exactly one of"),
        (["--to", "stored"], "where the group is already"),
        (["--to", "soon"], "is not a position"),
        (["--to-datetime", "soon"], "is not a point in time"),
        (["--to-group", "g"], "names the group itself"),
        (["--to-group", "none"], "has no committed offsets"),
        (["--from-file", "BAD"], "line 1: 'a,b' is not of the form"),
    ],
)
def test_wrong_reset_changes_nothing(
    run: Any, ottla_cluster: Cluster, tmp_path: Path, command_line: list[str], sentence: str
) -> None:
    """The sentence says what to do."""
    produce(ottla_cluster, "a", [b"1"])
    (tmp_path / "bad").write_text("a,b\n")
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(1)})
        line = [word.replace("BAD", str(tmp_path / "bad")) for word in command_line]
        done = run("group", "reset", "g", *line, "--execute")
        assert (done.code, done.out) == (2, b"")
        assert sentence in done.errors
        assert offsets.committed_offsets(brokers, "g")["a", 0].offset == 1


def test_explain_prints_requests(run: Any) -> None:
    """Each line has the address, the API with its version, and the fields; results are unchanged."""
    run("topic", "create", "orders")
    done = run("topic", "describe", "orders", "--explain", "--output", "json")
    assert done.json[0]["topic"] == "orders"
    lines = done.errors.splitlines()
    assert any("<- Metadata v" in line and "name='orders'" in line for line in lines)
    assert any("<- ListOffsets v" in line for line in lines)
    assert run("topic", "describe", "orders").errors == ""

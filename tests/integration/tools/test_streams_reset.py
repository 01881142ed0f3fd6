"""`ottla streams reset` against a cluster."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin.offsets import PROGRESS, CommittedOffset, commit_offsets, committed_offsets
from ottla.streams.application.election import Candidate, Election, ElectionSettings
from ottla.testing import Cluster
from ottla.tools import profiles

pytestmark = pytest.mark.slow

_QUERY = "3f0c9a52-0000-4000-8000-000000000000"


@pytest.fixture
def state_dir(ottla_cluster: Cluster, tmp_path: Path) -> Path:
    """Create an application's topics, groups and checkpoint, and topics of other owners."""
    for topic in ("words", "app-my-topic", "app-counts-changelog", "app-x-repartition"):
        ottla_cluster.create_topic(topic)
    checkpoint = tmp_path / "app" / "0"
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": _QUERY}))
    with ottla_cluster.admin() as brokers:
        for group in ("app", f"ottla-sink-{_QUERY}", "other"):
            commit_offsets(brokers, group, {("words", 0): CommittedOffset(0)})
    return tmp_path


def test_reset_is_a_dry_run_and_then_executed(
    run: Any, ottla_cluster: Cluster, state_dir: Path
) -> None:
    """The dry run comes first; input topics and other groups stay."""
    arguments = ("streams", "reset", "--application-id", "app", "--state-dir", str(state_dir))
    done = run(*arguments, "--output", "json")
    expected = [
        ("group", "app"),
        ("group", f"ottla-sink-{_QUERY}"),
        ("topic", "app-counts-changelog"),
        ("topic", "app-x-repartition"),
        ("checkpoint", str(state_dir / "app")),
    ]
    assert [(row["kind"], row["name"]) for row in done.json] == expected
    assert not any(row["executed"] for row in done.json)
    assert (state_dir / "app").exists()
    elsewhere = run(*arguments[:-1], str(state_dir / "elsewhere"))
    assert "There is no checkpoint in" in elsewhere.errors
    assert "Give --state-dir" in elsewhere.errors
    executed = run(*arguments, "--execute")
    assert (executed.code, executed.errors) == (
        0,
        "Reset: the next start of app begins from the beginning.\n",
    )
    assert not (state_dir / "app").exists()
    assert sorted(ottla_cluster.topics()) == ["app-my-topic", "words"]
    assert run("group", "list", "--output", "json").json[0]["group"] == "other"
    assert "Nothing to reset for app" in run(*arguments).errors


def test_reset_is_rejected_while_an_instance_runs(
    run: Any, ottla_cluster: Cluster, state_dir: Path
) -> None:
    """A running instance would write the removed data again."""
    settings = ElectionSettings(ottla_cluster.bootstrap, "app", heartbeat_interval_ms=50)
    election = Election(settings, Candidate("running", 1), lambda: None)
    election.start()
    arguments = ("streams", "reset", "--application-id", "app", "--state-dir", str(state_dir))
    while run(*arguments).code == 0:
        continue
    done = run(*arguments, "--execute")
    assert done.code == 1
    assert "'app' cannot be reset now: 1 instance runs" in done.errors
    election.stop()
    assert (state_dir / "app").exists()
    assert run(*arguments, "--execute").code == 0


def test_remaining_members_are_removed_with_force(
    run: Any, ottla_cluster: Cluster, state_dir: Path
) -> None:
    """The dry run only lists them, and --force works as in Kafka's tool."""
    settings = ElectionSettings(ottla_cluster.bootstrap, "app", heartbeat_interval_ms=60_000)
    election = Election(settings, Candidate("hangs", 1), lambda: None)
    election.start()
    arguments = ("streams", "reset", "--application-id", "app", "--state-dir", str(state_dir))
    while run(*arguments).code == 0:
        continue
    output = run(*arguments, "--force")
    assert "Members that would leave the group app-drivers: 1." in output.errors
    assert run(*arguments, "--execute").code == 1
    done = run(*arguments, "--force", "--execute")
    assert done.code == 0
    assert (
        "Members that left the group app-drivers: 1. An instance that still runs rejoins"
        in done.errors
    )
    assert not (state_dir / "app").exists()
    election.stop()


@pytest.fixture
def read_words(ottla_cluster: Cluster, state_dir: Path) -> Path:
    """Create an application with 6 of 10 words in its checkpoint, and 2 numbers in its group."""
    ottla_cluster.create_topic("numbers")
    producer = Producer({"bootstrap.servers": ottla_cluster.bootstrap})
    for n in range(10):
        producer.produce("words", f"{n}", timestamp=1_000 * (n + 1))
        producer.produce("numbers", f"{n}", timestamp=1_000 * (n + 1))
    assert producer.flush(10) == 0
    query = state_dir / "app" / "0"
    (query / "offsets").mkdir()
    (query / "commits").mkdir()
    (query / "offsets" / "3").write_text('v1\n{}\n{"words": {"0": 6}, "wall clock": {"0": 77}}')
    (query / "offsets" / "4").write_text('v1\n{}\n{"words": {"0": 8}}')
    (query / "commits" / "3").write_text("v1\n{}")
    with ottla_cluster.admin() as brokers:
        progress = CommittedOffset(2, metadata=PROGRESS)
        commit_offsets(brokers, "app", {("numbers", 0): progress})
    return state_dir


@pytest.mark.parametrize(
    ("command_line", "to", "stays"),
    [
        (("--to-earliest",), 0, 2),
        ((), 0, 2),
        (("--to-latest",), 10, 2),
        (("--to-offset", "4"), 4, 2),
        (("--to-datetime", "1970-01-01T00:00:08"), 7, 2),
        (("--by-duration", "P1D"), 10, 2),
        (("--shift-by", "-2"), 4, 2),
        (("--shift-by", "3"), 9, 2),
        (("--to", "-3"), 7, 2),
        (("--to", "+3"), 3, 2),
        (("--to", "@1970-01-01T00:00:08"), 7, 2),
    ],
)
def test_input_resumes_at_the_given_positions(
    run: Any,
    ottla_cluster: Cluster,
    read_words: Path,
    command_line: tuple[str, ...],
    to: int,
    stays: int,
) -> None:
    """Other topics keep their offsets; both are committed, without the progress metadata."""
    common_arguments = (
        "--application-id",
        "app",
        "--state-dir",
        str(read_words),
        "--input-topics",
        "words",
    )
    output = run("streams", "reset", *common_arguments, *command_line, "--output", "json")
    assert _positions(output.json) == [("words", 0, 6, to), ("numbers", 0, 2, stays)]
    with ottla_cluster.admin() as brokers:
        assert committed_offsets(brokers, "app")["numbers", 0].metadata == PROGRESS
        done = run("streams", "reset", *common_arguments, *command_line, "--execute")
        assert (done.code, done.errors) == (
            0,
            "Reset: the next start of app begins at the offsets above.\n",
        )
        assert committed_offsets(brokers, "app") == {
            ("words", 0): CommittedOffset(to),
            ("numbers", 0): CommittedOffset(stays),
        }
    again = run("streams", "reset", *common_arguments, "--shift-by", "0", "--output", "json")
    assert _positions(again.json)[0] == ("words", 0, to, to)


def _positions(rows: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    return [
        (row["name"], row["partition"], row["current_offset"], row["new_offset"])
        for row in rows
        if row["kind"] == "position"
    ]


def _reset(run: Any, folder: Path, *command_line: str) -> Any:
    return run(
        "streams", "reset", "--application-id", "app", "--state-dir", str(folder), *command_line
    )


def test_all_inputs_are_reset_without_topics(run: Any, read_words: Path) -> None:
    """Kafka's tool does nothing in this case, and prints no message."""
    done = _reset(run, read_words, "--to-offset", "5", "--output", "json")
    assert _positions(done.json) == [("numbers", 0, 2, 5), ("words", 0, 6, 5)]


def test_offset_outside_of_the_log_is_moved_into_it(run: Any, read_words: Path) -> None:
    """The command prints a message about it, as Kafka's tool does."""
    done = _reset(run, read_words, "--input-topics", "words", "--shift-by", "-50")
    assert "words-0: offset -44 is before its first record; using 0." in done.errors
    done = _reset(run, read_words, "--input-topics", "words", "--to-offset", "99")
    assert "words-0: offset 99 is past its end; using 10." in done.errors


def test_intermediate_topics_start_at_their_end(run: Any, read_words: Path) -> None:
    """The application's own output there is not read again."""
    done = _reset(run, read_words, "--intermediate-topics", "numbers", "--output", "json")
    assert _positions(done.json) == [("numbers", 0, 2, 10), ("words", 0, 6, 6)]


def test_offsets_come_from_a_file(run: Any, read_words: Path, tmp_path: Path) -> None:
    """A line has topic, partition and offset, as in Kafka's reset plans."""
    plan = tmp_path / "plan.csv"
    plan.write_text("words,0,3\nnumbers,0,50\n")
    done = _reset(run, read_words, "--from-file", str(plan), "--output", "json")
    assert _positions(done.json) == [("numbers", 0, 2, 10), ("words", 0, 6, 3)]
    assert "numbers-0: offset 50 is past its end; using 10." in done.errors


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("words,0\n", "line 1: 'words,0' is not of the form TOPIC,PARTITION,OFFSET"),
        ("\nwords,0,x\n", "line 2: 'words,0,x' is not of the form"),
        ("", "contains no line TOPIC,PARTITION,OFFSET"),
        ("words,0,1\nwords,9,1\n", "contains words-9, which is not of an input topic"),
        ("numbers,0,1\n", "does not contain words-0"),
    ],
)
def test_invalid_plan_file_is_rejected(
    run: Any, read_words: Path, tmp_path: Path, plan: str, message: str
) -> None:
    """The command fails before any change."""
    file = tmp_path / "plan.csv"
    file.write_text(plan)
    done = _reset(run, read_words, "--from-file", str(file), "--input-topics", "words", "--execute")
    assert done.code == 2
    assert message in done.errors
    assert (read_words / "app").exists()


@pytest.mark.parametrize(
    ("command_line", "code", "message"),
    [
        (("--input-topics", "words,nothing"), 1, "topic nothing is unknown; nothing was changed"),
        (
            ("--internal-topics", "words"),
            1,
            "words is not an internal topic of 'app'; there are: app-counts-",
        ),
        (("--to-latest", "--shift-by", "1"), 2, "with exactly one of --to-earliest, --to-latest, "),
        (("--to-latest", "--from-file", "/dev/null"), 2, "--shift-by, --from-file"),
        (("--by-duration", "soon"), 2, "'soon' is not a duration"),
        (("--dry-run",), 2, "cannot be combined"),
        (("--input-topics", "words", "--intermediate-topics", "words"), 2, "cannot be both"),
    ],
)
def test_invalid_reset_is_rejected_entirely(
    run: Any,
    ottla_cluster: Cluster,
    read_words: Path,
    command_line: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    """Kafka's tool would do the possible half of it."""
    topics = sorted(ottla_cluster.topics())
    done = _reset(run, read_words, *command_line, "--execute")
    assert done.code == code
    assert message in done.errors
    assert (read_words / "app").exists()
    assert sorted(ottla_cluster.topics()) == topics


def test_some_internal_topics_can_be_selected(
    run: Any, ottla_cluster: Cluster, state_dir: Path
) -> None:
    """The other topics stay."""
    done = _reset(run, state_dir, "--internal-topics", "app-x-repartition", "--execute")
    assert done.code == 0
    assert "app-counts-changelog" in ottla_cluster.topics()
    assert "app-x-repartition" not in ottla_cluster.topics()


def test_a_file_configures_the_client(
    run: Any,
    ottla_cluster: Cluster,
    state_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file is the same as for Kafka's tools: some settings are errors, some are reported as
    ignored.
    """
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "127.0.0.1:1")
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={ottla_cluster.bootstrap}\nrequest.timeout.ms=5000\nfetch.min.bytes=1\n"
    )
    done = _reset(run, state_dir, "--config-file", str(file))
    assert done.code == 0
    assert f"{file}: ignored settings: fetch.min.bytes." in done.errors
    file.write_text("security.protocol=SASL_SSL\n")
    refused = _reset(run, state_dir, "--command-config", str(file))
    assert refused.code == 1
    assert "sasl.mechanism=GSSAPI is not supported" in refused.errors


def test_the_file_of_a_profile_is_used_with_its_address(
    run: Any, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another address it has no effect."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    address = os.environ["OTTLA_BOOTSTRAP"]
    (tmp_path / "client.properties").write_text("bootstrap.servers=other:1\nsecurity.protocol=X\n")
    config = {"p": str(tmp_path / "client.properties")}
    profiles.write(profiles.Profiles({"p": address}, "p", config))
    assert _reset(run, state_dir).code == 0
    monkeypatch.delenv("OTTLA_BOOTSTRAP")
    assert "security.protocol=X" in _reset(run, state_dir).errors
    (tmp_path / "client.properties").write_text("bootstrap.servers=other:1\n")
    assert _reset(run, state_dir).code == 0

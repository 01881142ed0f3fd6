"""`ottla cluster quorum` and `kafka-metadata-quorum`: the quorum of a KRaft cluster."""

import json
from pathlib import Path

import pytest

from ottla.client.admin.apache import quorum
from ottla.client.admin.apache.quorum import RaftEndpoint
from ottla.testing import Cluster
from ottla.tools.cluster.controller_files import parse_directory_id
from ottla.tools.main import run
from ottla_scripts import entry
from tests.unit.tools.test_cluster_quorum import QUORUM

_TEXT = "JEXY6aqzQY-32P5TStzaFg"
_ID = parse_directory_id(_TEXT)


@pytest.fixture(name="described")
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Respond to requests for the quorum with the quorum of a KRaft cluster."""
    monkeypatch.setattr(quorum, "describe_metadata_quorum", lambda brokers: QUORUM)


@pytest.fixture(name="changes")
def _changes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Collect the changes of the quorum instead of requesting them."""
    changes: list[tuple[object, ...]] = []
    for name in ("add_raft_voter", "remove_raft_voter"):
        monkeypatch.setattr(
            quorum, name, lambda brokers, *what, name=name: changes.append((name, *what))
        )
    return changes


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """The file of a controller whose directory has been formatted."""
    (tmp_path / "meta.properties").write_text(
        f"version=1\nnode.id=4\ncluster.id=c\ndirectory.id={_TEXT}\n"
    )
    path = tmp_path / "controller.properties"
    path.write_text(
        f"node.id=4\nprocess.roles=controller\nlog.dirs={tmp_path}\n"
        "listeners=CONTROLLER://h:9093\ncontroller.listener.names=CONTROLLER\n"
    )
    return path


@pytest.mark.usefixtures("described")
def test_quorum_is_shown(ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """The replicas are rows, the leader first; JSON has the epoch and the lag, too."""
    line = ["cluster", "quorum", "--bootstrap", ottla_cluster.bootstrap]
    assert run([*line, "--output", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["leader"], result["epoch"], result["max_follower_lag"]) == (2, 6, 4)
    assert [row["lag"] for row in result["replicas"]] == [0, 4, 1]
    assert [row["directory_id"] for row in result["replicas"]] == [None, _TEXT, _TEXT]
    assert result["replicas"][0]["endpoints"] == ["CONTROLLER://[::1]:9093"]
    assert run(line) == 0
    printed = capsys.readouterr()
    assert [text.split()[:2] for text in printed.out.splitlines()[1:]] == [
        ["2", "leader"], ["1", "follower"], ["3", "observer"],
    ]  # fmt: skip
    assert "Epoch 6, high watermark 7. The last voter is 4 records behind." in printed.err


def test_voters_are_changed_on_execution(
    config: Path,
    changes: list[tuple[object, ...]],
    ottla_cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without --execute nothing is requested."""
    line = ["cluster", "quorum", "--bootstrap", ottla_cluster.bootstrap]
    add, remove = ["--add", str(config)], ["--remove", "4", "--directory-id", _TEXT]
    assert (run([*line, *add]), run([*line, *remove]), changes) == (0, 0, [])
    assert capsys.readouterr().out.count("repeat with --execute") == 2
    assert run([*line, *add, "--execute"]) == 0
    assert run([*line, *remove, "--execute", "--output", "json"]) == 0
    assert changes == [
        ("add_raft_voter", 4, _ID, (RaftEndpoint("CONTROLLER", "h", 9093),)),
        ("remove_raft_voter", 4, _ID),
    ]
    added, removed = capsys.readouterr().out.splitlines()
    assert added == "Added controller 4 at CONTROLLER://h:9093."
    assert json.loads(removed) == {"controller": 4, "executed": True}


def test_script_changes_the_voters(
    config: Path,
    changes: list[tuple[object, ...]],
    ottla_cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentences are Apache Kafka's; `--dry-run` requests nothing."""
    line = ["--bootstrap-server", ottla_cluster.bootstrap]
    add = [*line, "--command-config", str(config), "add-controller"]
    remove = [*line, "remove-controller", "-i", "4", "-d", _TEXT]
    assert entry.run("kafka-metadata-quorum", [*add, "--dry-run"]) == 0
    assert entry.run("kafka-metadata-quorum", [*remove, "--dry-run"]) == 0
    assert changes == []
    capsys.readouterr()
    assert entry.run("kafka-metadata-quorum", add) == 0
    assert entry.run("kafka-metadata-quorum", remove) == 0
    assert [name for name, *_ in changes] == ["add_raft_voter", "remove_raft_voter"]
    assert capsys.readouterr().out.splitlines() == [
        f"Added controller 4 with directory id {_TEXT} and endpoints: CONTROLLER://h:9093",
        f"Removed  KRaft controller 4 with directory id {_TEXT}",
    ]


@pytest.mark.parametrize(
    ("words", "api"),
    [
        (["describe", "--status"], "DESCRIBE_QUORUM"),
        (["describe", "--replication"], "DESCRIBE_QUORUM"),
        (["remove-controller", "-i", "3", "-d", _TEXT], "REMOVE_RAFT_VOTER"),
    ],
)
def test_script_fails_on_ottla_as_on_zookeeper(
    words: list[str], api: str, ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache Kafka's tool prints this sentence against brokers of 3.9.2 on ZooKeeper."""
    line = ["--bootstrap-server", ottla_cluster.bootstrap, *words]
    assert entry.run("kafka-metadata-quorum", line) == 1
    assert capsys.readouterr().err == (
        "org.apache.kafka.common.errors.UnsupportedVersionException: "
        f"The node does not support {api}\n"
    )


@pytest.mark.usefixtures("described")
def test_script_prints_json_and_durations(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown times are -1 in each form."""
    line = ["--bootstrap-server", ottla_cluster.bootstrap, "describe"]
    assert entry.run("kafka-metadata-quorum", [*line, "--status", "--output", "json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["MaxFollowerLagTimeMs"] == 200
    assert status["CurrentVoters"][0] == {"id": 1, "directoryId": _TEXT}
    assert entry.run("kafka-metadata-quorum", [*line, "--replication", "--output", "json"]) == 0
    assert [row["Lag"] for row in json.loads(capsys.readouterr().out)] == [0, 4, 1]
    assert entry.run("kafka-metadata-quorum", [*line, "--replication", "--human-readable"]) == 0
    rows = [text.split("\t") for text in capsys.readouterr().out.splitlines()]
    assert rows[1][4].endswith(" ms ago")
    assert rows[3][4].strip() == "-1"


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ([], 1, "The cluster has no KRaft quorum: `ottla cluster info` names its controller"),
        (["--remove", "3", "--directory-id", _TEXT, "--execute"], 1, "has no KRaft quorum"),
        (["--remove", "3", "--directory-id", "x"], 1, "at least have 2 bytes"),
        (["--remove", "3"], 2, "Name --remove and --directory-id together"),
        (["--execute"], 2, "Name what to execute"),
        (["--add", "$F"], 1, "node.id not found in configuration file"),
        (["--add", "$F", "--remove", "1", "--directory-id", _TEXT], 2, "one after the other"),
    ],
)
def test_bad_input_is_a_sentence(
    words: list[str],
    code: int,
    reason: str,
    tmp_path: Path,
    ottla_cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says what to do instead."""
    (tmp_path / "empty.properties").touch()
    words = [str(tmp_path / "empty.properties") if word == "$F" else word for word in words]
    assert run(["cluster", "quorum", "--bootstrap", ottla_cluster.bootstrap, *words]) == code
    assert reason in capsys.readouterr().err

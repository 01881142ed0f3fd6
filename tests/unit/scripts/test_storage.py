"""`kafka-storage`: options that it refuses on Ottla; the rest is in the transcript."""

from pathlib import Path

import pytest

from ottla_scripts import entry
from tests.unit.cluster.options.test_roles import QUICKSTART

pytestmark = pytest.mark.slow

_UUID = "JEXY6aqzQY-32P5TStzaFg"


def write_config(folder: Path, changes: str = "") -> str:
    settings = {**QUICKSTART, "log.dirs": str(folder / "data")}
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in settings.items()) + changes)
    return str(path)


@pytest.mark.parametrize(
    ("words", "changes", "reason"),
    [
        (["-N"], "", "--no-initial-controllers makes a node join the controllers of other nodes"),
        (["-I", f"2@b:9093:{_UUID}"], "", "names the controllers 2"),
        (["-I", f"1@a:1:{_UUID},2@b:1:{_UUID}"], "", "name only this node, 1, or use --standalone"),
        (["-I", "1@a:1"], "", "must look like id@host:port:directory"),
        (["-s", "-f", "share.version=1"], "", "Ottla's broker does not have the feature"),
        ([], "process.roles=broker\n", "process.roles=broker expects the KRaft controllers"),
        (["-s"], "process.roles=controller\n", "the node would be no broker"),
        ([], "controller.quorum.voters=1@a:1,2@b:1\n", "names the controllers 1, 2"),
        (["-s"], "zookeeper.connect=a:1\n", "no directory needs to be formatted"),
    ],
)
def test_node_that_ottla_cannot_run_is_not_formatted(
    words: list[str], changes: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says why, the exit code is 1, and no directory is created."""
    line = ["format", "-t", "abc", "-c", write_config(tmp_path, changes), *words]
    assert entry.run("kafka-storage", line) == 1
    printed = capsys.readouterr()
    assert reason in printed.err
    assert printed.out == ""
    assert not (tmp_path / "data").exists()


def test_empty_cluster_id_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that is not set, as in `-t "$KAFKA_CLUSTER_ID"`, is an error."""
    assert entry.run("kafka-storage", ["format", "-s", "-t", "", "-c", write_config(tmp_path)]) == 1
    assert "cannot be the id of a cluster" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_missing_file_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the file."""
    assert entry.run("kafka-storage", ["info", "-c", str(tmp_path / "no.properties")]) == 1
    assert "no.properties: No such file or directory" in capsys.readouterr().err

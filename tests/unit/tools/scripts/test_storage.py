"""`kafka-storage`: options that it refuses on Ottla, and users; the rest is in the transcript."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client import AdminClient
from ottla.testing import Cluster
from ottla.tools.scripts import entry
from tests.unit.cluster.options.test_roles import QUICKSTART

_UUID = "JEXY6aqzQY-32P5TStzaFg"


def _config(folder: Path, changes: str = "") -> str:
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
        (["-s"], "zookeeper.connect=a:1\n", "there is nothing to format"),
    ],
)
def test_node_that_ottla_cannot_run_is_not_formatted(
    words: list[str], changes: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says why, the exit code is 1, and no directory is created."""
    line = ["format", "-t", "abc", "-c", _config(tmp_path, changes), *words]
    assert entry.run("kafka-storage", line) == 1
    printed = capsys.readouterr()
    assert reason in printed.err
    assert printed.out == ""
    assert not (tmp_path / "data").exists()


def test_empty_cluster_id_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that is not set, as in `-t "$KAFKA_CLUSTER_ID"`, is an error."""
    assert entry.run("kafka-storage", ["format", "-s", "-t", "", "-c", _config(tmp_path)]) == 1
    assert "cannot be the id of a cluster" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_missing_file_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the file."""
    assert entry.run("kafka-storage", ["info", "-c", str(tmp_path / "no.properties")]) == 1
    assert "no.properties: No such file or directory" in capsys.readouterr().err


def test_ids_need_no_broker() -> None:
    """`random-uuid` starts fast: it imports no part of the broker and no event loop."""
    program = (
        "import sys; from ottla.tools.scripts.entry import run; run('kafka-storage', ['random-uuid']);"
        "print([m for m in sys.modules if m in ('asyncio', 'ottla.server', 'ottla.cluster')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_users_log_in_after_the_first_start(tmp_path: Path) -> None:
    """--add-scram stores credentials with the new cluster, as the quickstart with SASL expects."""
    config = _config(tmp_path)
    words = ["format", "-s", "-t", "abc", "-c", config, "-S", "SCRAM-SHA-512=[name=bob,password=b]"]
    assert entry.run("kafka-storage", words) == 0
    options = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with (
        Cluster(options=options) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        assert cluster.cluster_id == "abc"
        assert list(admin.describe_user_scram_credentials()) == ["bob"]

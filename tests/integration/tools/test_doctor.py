"""`ottla doctor` as a command: the checks, the output, and the exit code."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.tools import main
from tests.integration.tools.conftest import Run


@pytest.fixture
def nowhere() -> str:
    """Return an address on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_healthy_cluster_is_no_failure(run: Run) -> None:
    """There is one line for each check, and no remedy for the cluster."""
    done = run("doctor")
    assert done.code == 0
    lines = done.out.decode().splitlines()
    assert lines[0].startswith("ok    port  ")
    assert any(line.startswith("ok    controller ") for line in lines)
    assert not any(line.startswith("FAIL") for line in lines)


def test_json_has_every_finding(run: Run) -> None:
    """The JSON has the check, the state, the finding and the remedy."""
    findings = run("doctor", "--output", "json").json
    assert {frozenset(finding) for finding in findings} == {
        frozenset({"check", "state", "found", "remedy"})
    }
    assert {finding["state"] for finding in findings} <= {"ok", "warn"}


def test_machine_is_checked_without_a_broker(
    nowhere: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Directory, disk, limits and port are checked; that no process listens is a failure."""
    data = str(tmp_path / "data")
    assert main.run(["doctor", "-b", nowhere, "--data", data, "--output", "json"]) == 1
    findings = {load["check"]: load for load in json.loads(capsys.readouterr().out)}
    assert findings["port"]["state"] == "fail"
    assert findings["port to listen on"]["state"] == "ok"
    assert findings[f"log directory {data}"]["state"] == "ok"
    assert {"open files (ulimit -n)", f"disk below {tmp_path}", "python"} <= findings.keys()


def test_remedy_is_below_the_finding(nowhere: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has the remedy in the column of the finding."""
    assert main.run(["doctor", "-b", nowhere]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("FAIL  port ")
    assert second.strip().startswith("-> Start a broker with `ottla up --port ")
    assert second.index("->") == first.index("nothing listens")


def test_directories_come_from_the_configuration_file(
    nowhere: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The directories are read from the file as the broker does it."""
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/a,/proc/b\n")
    assert main.run(["doctor", "-b", nowhere, "--config", str(config)]) == 1
    out = capsys.readouterr().out
    assert f"ok    log directory {tmp_path}/a" in out
    assert "FAIL  log directory /proc/b" in out


def test_another_machine_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """If the broker is on another machine, the disks of this machine are not checked."""
    assert main.run(["doctor", "-b", "broker.invalid:9092"]) == 1
    out = capsys.readouterr().out
    assert "is not a known host" in out
    assert "disk below" not in out


WITHOUT_SPARK = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pyarrow", "pandas", "numpy"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotInstalled())
from ottla.tools.main import run
run(["doctor", "--help"])
"""


def test_doctor_needs_no_spark() -> None:
    """The doctor also runs if Ottla is installed without extras."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=True
    )
    assert "Usage: ottla doctor" in done.stdout, done.stderr

"""Doctor: log directories that a running broker holds, and programs that are examined."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.tools.doctor import libraries, machine
from ottla.tools.doctor.findings import State
from tests.unit.tools.test_doctor_machine import examined


def test_holder_of_the_lock_is_reported(tmp_path: Path) -> None:
    """The finding has the process and its command, and the process continues."""
    with Cluster(data=tmp_path) as running:
        finding = examined(tmp_path)["lock of"]
        assert finding.state is State.WARN
        assert f"held by process {os.getpid()} (" in finding.found
        assert "no broker responds at the given address" in finding.found
        assert examined(tmp_path, is_served=True)["lock of"].state is State.OK
        running.create_topic("t")
    assert examined(tmp_path)["lock of"].found == "not locked"


@pytest.mark.parametrize(("size", "is_cut"), [(10, False), (500, True)])
def test_a_long_command_of_the_holder_ends_with_an_ellipsis(
    size: int, is_cut: bool, tmp_path: Path
) -> None:
    """A reader sees whether the command line is complete."""
    command = [sys.executable, "-c", f"input() # {'x' * size}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        lock = tmp_path / ".lock"
        lock.write_text(str(process.pid))
        # The command line changes once the process has executed Python.
        while b"input" not in (line := Path(f"/proc/{process.pid}/cmdline").read_bytes()):
            assert process.poll() is None, line
        assert machine._holder(lock).endswith("…)") == is_cut
        process.kill()


def test_owner_of_the_data_is_reported(tmp_path: Path) -> None:
    """The finding has the broker and the cluster, or says that they are unknown."""
    assert examined(tmp_path)["data in"].found == "none yet"
    with Cluster(data=tmp_path) as running:
        cluster_id = running.cluster_id
    assert examined(tmp_path)["data in"].found == f"of broker 1 in cluster {cluster_id}"
    (tmp_path / "meta.properties").write_bytes(b"garbage\n")
    finding = examined(tmp_path)["data in"]
    assert (finding.state, "backup" in finding.remedy) == (State.FAIL, True)


def test_libraries_are_listed_with_their_versions() -> None:
    """Only installed libraries are listed."""
    findings = {finding.check: finding for finding in libraries.examine()}
    assert findings["confluent-kafka"].state is State.OK
    assert findings["python"].found.startswith("3.")


def test_java_home_without_java_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark would use this directory."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = libraries._java()
    assert (finding.state, "Unset JAVA_HOME" in finding.remedy) == (State.WARN, True)

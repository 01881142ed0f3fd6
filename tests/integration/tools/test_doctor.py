"""`ottla doctor` as a command, for a running cluster and without Spark."""

import subprocess
import sys

from tests.integration.tools.conftest import Run


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

"""Workloads run in a cluster, with faults."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.testing import Cluster
from ottla.testing.workloads.plan import (
    Plan,
    parse_plan,
)
from ottla.testing.workloads.running import run_plan
from tests.unit.testing.test_workloads import WORKLOAD


def _plan(text: str) -> Plan:
    return parse_plan(f'duration = "60s"\n{text}')


_SHORT = '[[produce]]\ntopic = "orders"\nrecords = 20\n'


def test_workload_can_be_repeated_in_a_running_cluster(ottla_cluster: Cluster) -> None:
    """Existing topics stay, and records of earlier runs do not hide that one is missing."""
    text = f'bootstrap = "{ottla_cluster.bootstrap}"\n[topics.orders]\n{_SHORT}[[consume]]\ntopic = "orders"\n'
    for group in ("first", "second"):
        report = run_plan(_plan(f'{text}group = "{group}"\n'), print)
        assert report.problems == []
        assert report.consumed[0].facts()["read"] == 20
    with pytest.raises(ConfigError, match="exists with 1 partitions, not 2"):
        run_plan(_plan(text.replace("orders]", "orders]\npartitions = 2")), print)


def test_brokers_that_are_killed_on_purpose_do_not_warn(tmp_path: Path) -> None:
    """Standard error has the faults only; the command does not configure logging."""
    file = tmp_path / "workload.toml"
    file.write_text(WORKLOAD.replace("ACTION", "kill"))
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "perf", "workload", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.fullmatch(r"kill broker (\d)\nrestart broker \1\n", done.stderr)

"""Workloads run in a cluster, with faults."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.testing import Cluster
from ottla.tools.workloads.plan import (
    WorkloadPlan,
    parse_plan,
)
from ottla.tools.workloads.running import run_plan
from ottla_scripts import entry
from tests.unit.tools.test_workloads import WORKLOAD


def test_no_acknowledged_record_is_lost_when_the_leader_pauses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script runs brokers, clients and the fault, and checks the records."""
    file = tmp_path / "workload.toml"
    file.write_text(WORKLOAD.replace("ACTION", "pause"))
    assert entry.run("trogdor", ["run", str(file), "--output", "json"]) == 0
    printed = capsys.readouterr()
    facts = json.loads(printed.out)
    assert facts["produce"][0]["acknowledged"] == 300
    assert facts["consume"][0]["missing"] == 0
    assert facts["consume"][0]["read"] >= 300
    assert [line.rsplit(" ", 1)[0] for line in facts["faults"]] == ["pause broker", "resume broker"]


def _plan(text: str) -> WorkloadPlan:
    return parse_plan(f'duration = "60s"\n{text}')


_SHORT = '[[produce]]\ntopic = "orders"\nrecords = 20\n'


def test_ctrl_c_ends_a_workload() -> None:
    """Its threads end, its faults are undone, and its brokers stop."""
    main = threading.main_thread().ident
    assert main is not None
    plan = _plan(
        '[cluster]\nbrokers = 2\n[[produce]]\ntopic = "orders"\nrecords = 100000\nrate = 100\n'
        '[[consume]]\ntopic = "orders"\n'
        '[[fault]]\nat = "100ms"\naction = "pause"\nbroker = 2\nfor = "50s"\n'
    )
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            signal.pthread_kill(main, signal.SIGINT)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, say)
    assert time.monotonic() - started < 30
    assert lines == ["pause broker 2", "resume broker 2"]


def test_fault_that_did_not_happen_is_a_problem() -> None:
    """Without it the run has proved nothing."""
    report = run_plan(
        _plan(_SHORT + '[[fault]]\nat = "50s"\naction = "kill"\nbroker = 1\nfor = "1s"\n'), print
    )
    assert report.problems == ["the workload ended before its fault at 50 s: kill broker 1"]


def test_records_that_are_all_refused_are_a_problem() -> None:
    """The reason is the broker's."""
    report = run_plan(
        _plan(
            _SHORT + 'value_bytes = 500\n[topics.orders]\nconfig = {"max.message.bytes" = "100"}\n'
        ),
        print,
    )
    assert report.produced[0].errors == {"MESSAGE_TOO_LARGE": 20}
    assert report.problems == ["no record to orders was acknowledged: MESSAGE_TOO_LARGE"]


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

"""Assign the files of tests to processes, the file that takes longest first."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Seconds of the files that take long, as `python -m tests.durations --record-order` writes them.
ORDER_FILE = Path(__file__).parent / "order.json"

# One process runs the tests of each group, one after the other: they share what takes long to make
# (Spark's session, the parsed files of the whole repository), or they measure times and use both
# cores. The scheduler sees names only, not the marker `alone` of their files.
GROUPS = {
    "spark": (
        "tests/spark/",
        "tests/compat/test_secured_streams.py",
        "tests/corpus/test_spark_cells.py",
    ),
    "until stopped": (
        "tests/compat/test_notes.py",
        "tests/compat/test_group_types.py",
        "tests/compat/scripts/test_until_stopped.py",
    ),
    "alone": (
        "tests/robustness/",
        "tests/process/test_sink_restarts.py",
        "tests/compat/test_quotas.py",
    ),
    "law": ("tests/law/",),
}
# Files of a group's folder that use nothing of what the group shares: their programs run alone.
OWN_PROGRAMS = (
    "tests/spark/test_command.py",
    "tests/spark/test_instances.py",
    "tests/spark/test_killed.py",
)


def scope_of(nodeid: str) -> str:
    """Return the group of a test, or its file."""
    if nodeid.startswith(OWN_PROGRAMS):
        return nodeid.partition("::")[0]
    for group, prefixes in GROUPS.items():
        if nodeid.startswith(prefixes):
            return group
    return nodeid.partition("::")[0]


class ByFile(LoadScopeScheduling):
    """Assigns whole files, and whole groups of files, to processes."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that ended its process; another process runs only the tests behind it.

        Completed files are forgotten: assigned once more, they would be empty, and a process
        without a test to run waits for more forever, with its last test not run.
        """
        units = self.assigned_work[node]
        tests = [(unit, nodeid) for unit in units.values() for nodeid in unit if not unit[nodeid]]
        ended_by = tests[0][1] if tests else None
        for unit, nodeid in tests[:1]:
            unit[nodeid] = True
        self.assigned_work[node] = {
            scope: unit for scope, unit in units.items() if not all(unit.values())
        }
        super().remove_node(node)
        return ended_by


def longest_first(items: list[pytest.Item], seconds: dict[str, float]) -> None:
    """Sort tests so that the scopes that take longest come first, and files stay together.

    A process that starts a long file last would run alone while the others wait for it.
    """
    totals = _totals(seconds)
    files = {item.nodeid: item.nodeid.partition("::")[0] for item in items}
    items.sort(
        key=lambda item: (
            -totals.get(scope_of(item.nodeid), 0.0),
            scope_of(item.nodeid),
            -seconds.get(files[item.nodeid], 0.0),
            files[item.nodeid],
        )
    )


def recorded_seconds() -> dict[str, float]:
    """Return the seconds of each file that takes long."""
    seconds: dict[str, float] = json.loads(ORDER_FILE.read_text(encoding="utf-8"))
    return seconds


def write_order(seconds: Iterable[tuple[str, float]], at_least: float) -> None:
    """Store the files that take at least so many seconds, the longest first."""
    rows = sorted(seconds, key=lambda row: (-row[1], row[0]))
    kept = {file: round(duration, 1) for file, duration in rows if duration >= at_least}
    ORDER_FILE.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def _totals(seconds: dict[str, float]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for file, duration in seconds.items():
        scope = scope_of(file)
        totals[scope] = totals.get(scope, 0.0) + duration
    return totals

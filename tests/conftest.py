"""Settings of all tests: hypothesis profiles, signals, time limits, and the distribution to
processes.
"""

import faulthandler
import gc
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# The time of an example depends more on the machine than on the code.
settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")

# A shell that starts a command in the background has it ignore SIGINT, and each program that it
# starts, too. Tests interrupt programs, and their own process.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The time limit of a test raises an exception in Python, which code in C does not notice. This long
# after the limit the process ends with the stacks of its threads, and the remaining tests run in
# another process.
_GRACE_S = 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a process of `make test` whose test does not end at its time limit."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker and marker.args else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(limit + _GRACE_S, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


# The files with the marker `alone`: one process runs them, one after the other. The scheduler sees
# the ids of tests only, not their markers, so the files are listed here, too.
_ONE_BY_ONE = (
    "tests/spark/",
    "tests/robustness/",
    "tests/process/test_sink_restarts.py",
    "tests/compat/test_quotas.py",
)


# These tests share the parsed files of the whole repository.
_LAWS = "tests/law/"


class _ByFile(LoadScopeScheduling):
    """Assigns whole files to processes."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_LAWS):
            return _LAWS
        return "" if nodeid.startswith(_ONE_BY_ONE) else nodeid.partition("::")[0]

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that ended its process; another process runs those behind it only.

        Completed files are forgotten: assigned once more, they would be empty, and a process that
        is given nothing to run waits for more forever, with its last test not run.
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler that assigns tests to the processes of `make test`."""
    return _ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests that one process runs first if several processes run the tests."""
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Return 0 for the tests that run one by one, and 1 for the others."""
    return 0 if item.get_closest_marker("alone") else 1


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and collected tests from the garbage collections of every test."""
    gc.collect()
    gc.freeze()

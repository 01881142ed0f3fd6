"""A pytest plugin: record the time and the first failure of each test, and check the budgets.

Below the folder of `--results` (default `out`) it writes `durations.json` (tests/durations.py) and
`failures.json` (tests/runs/failures.py).
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durations import Cost, Durations, budgets, over_budget, table_of
from tests.runs.failures import Failures
from tests.runs.processor_time import REFERENCE_LOOP_SECONDS, loop_seconds, processor_seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("ottla's tests")
    group.addoption("--results", default="out", help="folder of the recorded durations")
    group.addoption("--durations-table", action="store_true", help="print where the time went")
    group.addoption("--budgets", action="store_true", help="fail if a folder exceeds its budget")


class Meter:
    """Measures the tests of this process, and attaches the results to their reports."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._file = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Attach the processor seconds since the last report, and once a file the speed."""
        report = yield
        now = processor_seconds()
        report.processor_seconds = now - (now if self._last is None else self._last)
        self._last = now
        file = item.nodeid.partition("::")[0]
        if file != self._file:
            self._file = file
            report.loop_seconds = loop_seconds()
            self._last = processor_seconds()
        return report


class Recorder:
    """Collects the reports of all processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = Path(config.getoption("results"))
        self._start = time.monotonic()
        self._durations = Durations()
        self._loops: list[float] = []
        self._failures = Failures()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of one phase of a test, and its failure."""
        cost = self._durations.tests.setdefault(report.nodeid, Cost(tests=1))
        cost.seconds += report.duration
        cost.processor_seconds += getattr(report, "processor_seconds", 0.0)
        if hasattr(report, "loop_seconds"):
            self._loops.append(report.loop_seconds)
        if report.failed:
            self._failures.add(report.nodeid, report.longreprtext)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Fail a run whose tests have passed if a folder exceeds its budget."""
        # The processes of the tests have ended behind the other plugins: their time is known.
        if self._config.getoption("budgets"):
            self._failures.budgets = over_budget(
                self._durations.by_folder(), budgets(), self._loop_seconds()
            )
        if self._failures.budgets and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the results, print where the time went and which folder exceeds its budget."""
        self._durations.wall_seconds = time.monotonic() - self._start
        self._durations.processor_seconds = processor_seconds()
        self._durations.loop_seconds = self._loop_seconds()
        self._durations.save(self._folder / "durations.json")
        self._failures.save(self._folder)
        if self._config.getoption("durations_table"):
            terminalreporter.section("where the time went")
            for line in table_of(self._durations):
                terminalreporter.line(line)
        for sentence in self._failures.budgets:
            terminalreporter.line(sentence, red=True)

    def _loop_seconds(self) -> float:
        return statistics.median(self._loops) if self._loops else REFERENCE_LOOP_SECONDS


def pytest_configure(config: pytest.Config) -> None:
    """Measure in processes that run tests, and collect in the process that starts them."""
    is_worker = hasattr(config, "workerinput")
    starts_workers = not is_worker and bool(config.getoption("numprocesses", 0))
    if not starts_workers:
        config.pluginmanager.register(Meter(), "ottla-meter")
    if not is_worker:
        config.pluginmanager.register(Recorder(config), "ottla-recorder")

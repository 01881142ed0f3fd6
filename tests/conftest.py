"""Settings of all tests: hypothesis profiles, signals, time limits, temporary files, and the
distribution to processes.
"""

import faulthandler
import gc
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from ottla.base.logs import AUDIT
from tests import temporary
from tests.runs import needs, nightly, recorder
from tests.runs.scheduler import ByFile, longest_first, recorded_seconds

# The time of an example depends more on the machine than on the code.
settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")

# A shell that starts a command in the background has it ignore SIGINT, and each program that it
# starts, too. Tests interrupt programs, and their own process.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the tests."""
    recorder.pytest_addoption(parser)
    parser.addoption("--nightly", action="store_true", help="run the tests marked `nightly`, too")


def pytest_configure(config: pytest.Config) -> None:
    """Record the time of each test, and create temporary files in memory, except nightly."""
    recorder.pytest_configure(config)
    if not config.getoption("nightly"):
        temporary.use_memory(os.environ)
        # Forget the folder of an earlier call.
        tempfile.tempdir = None


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler that assigns tests to the processes of `make test`."""
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out nightly tests, and run the longest files first if several processes run them."""
    needs.check_tools(items)
    nightly.leave_out(config, items)
    if hasattr(config, "workerinput"):
        longest_first(items, recorded_seconds())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose tool is missing, before its fixtures are set up."""
    needs.require_tools(item)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and collected tests from the garbage collections of every test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def untouched_loggers() -> Iterator[None]:
    """Restore the loggers of the process, which commands that run brokers configure."""
    loggers = [logging.getLogger(name) for name in ("", AUDIT)]
    former = [(list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, (handlers, level) in zip(loggers, former, strict=True):
        logger.handlers[:] = handlers
        logger.setLevel(level)

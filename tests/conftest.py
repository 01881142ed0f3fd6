"""Settings of all tests: hypothesis profiles, and the distribution of tests to processes."""

import gc

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The time of an example depends more on the machine than on the code.
settings.register_profile("ottla", deadline=None)
settings.load_profile("ottla")


# These tests use both cores, or measure times that other tests would change: one process runs them,
# one after the other.
_ONE_BY_ONE = (
    "tests/spark/",
    "tests/robustness/",
    "tests/process/test_sink_restarts.py",
    "tests/compat/test_quotas.py",
)


class _ByFile(LoadScopeScheduling):
    """Assigns whole files to processes."""

    def _split_scope(self, nodeid: str) -> str:
        return "" if nodeid.startswith(_ONE_BY_ONE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler that assigns tests to the two processes of `make test`."""
    return _ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest tests first if two processes run the tests."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(_ONE_BY_ONE))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and collected tests from the garbage collections of every test."""
    gc.collect()
    gc.freeze()

"""What holds for every test."""

import gc

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# How long an example takes says more about the machine than about the code.
settings.register_profile("ottla", deadline=None)
settings.load_profile("ottla")


# They keep both cores busy, or measure what others would disturb: one process runs them, one after the other.
_ONE_BY_ONE = (
    "tests/spark/",
    "tests/robustness/",
    "tests/process/test_sink_restarts.py",
    "tests/compat/test_quotas.py",
)


class _ByFile(LoadScopeScheduling):
    """Hands files over to processes."""

    def _split_scope(self, nodeid: str) -> str:
        return "" if nodeid.startswith(_ONE_BY_ONE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Say, where two processes run the tests (`make test`), which tests one of them takes."""
    return _ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let two processes begin with what takes longest."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(_ONE_BY_ONE))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave modules and collected tests out of the garbage collections of every test."""
    gc.collect()
    gc.freeze()

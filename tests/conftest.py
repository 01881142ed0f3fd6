"""What holds for every test."""

import gc

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("ottla", deadline=None)
settings.load_profile("ottla")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave modules and collected tests out of the garbage collections of every test."""
    gc.collect()
    gc.freeze()

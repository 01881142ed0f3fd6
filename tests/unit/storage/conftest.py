"""After every test of the storage, the files that it left open are closed."""

from collections.abc import Iterator

import pytest

from tests.unit.storage.world import OPENED


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """A process has not many, and hundreds of tests each open a dozen."""
    yield
    for each in OPENED:
        each.abandon()
    OPENED.clear()

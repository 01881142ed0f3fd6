"""Close the files that a storage test left open."""

from collections.abc import Iterator

import pytest

from tests.unit.storage.world import OPENED


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Close every log and directory: hundreds of tests open a dozen descriptors each."""
    yield
    for log in OPENED:
        log.abandon()
    OPENED.clear()

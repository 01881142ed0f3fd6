"""Brokers as processes: `ottla up`, as users start it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.process import BrokerProcess


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Return a running broker with default options, on a free port, with a temporary folder."""
    with BrokerProcess(tmp_path / "data") as running:
        yield running

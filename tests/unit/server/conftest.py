"""Replicas on a simulated disk, for tests of the layer between them and coordinators or controller."""

from collections.abc import AsyncIterator

import pytest

from tests.handlers.logs import LogsBroker, logs_broker


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Return broker 1 with its log directory and without topics."""
    async with logs_broker() as running:
        yield running

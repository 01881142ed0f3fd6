"""Replicas on a simulated disk, whose state the test sets."""

from collections.abc import AsyncIterator

import pytest

from tests.handlers.logs import LogsBroker, logs_broker


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Yield broker 1 with its log directory and without topics."""
    async with logs_broker() as running:
        yield running

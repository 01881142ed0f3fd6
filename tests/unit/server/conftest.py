"""Replicas on a simulated disk for what stands between coordinators, controller and them."""

from collections.abc import AsyncIterator

import pytest

from tests.handlers.logs import LogsBroker, logs_broker


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Broker 1 with its log directory; no topic."""
    async with logs_broker() as running:
        yield running

"""The fixture of the handlers that read and write records."""

from collections.abc import AsyncIterator

import pytest

from tests.handlers.logs import LogsBroker, logs_broker


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Return a broker with replicas and no topic."""
    async with logs_broker() as running:
        yield running

"""One broker for the whole table, and the fixtures of commands."""

from collections.abc import Iterator

import pytest

from ottla.testing import Cluster
from tests.integration.tools.conftest import run_alone as run_alone


@pytest.fixture(scope="session", name="cluster")
def _cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        running.create_topic("orders", partitions=3)
        running.create_topic("empty")
        yield running

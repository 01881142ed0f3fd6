"""Fixtures of the console's model: a cluster of three brokers for the whole session."""

from collections.abc import Iterator

import pytest

from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return a running cluster; tests use topics and groups of their own."""
    with Cluster(brokers=3) as running:
        yield running


@pytest.fixture
def connection(cluster: Cluster) -> Iterator[ClusterConnection]:
    """Return a connection to the cluster with an empty cache."""
    opened = ClusterConnection(ClusterSettings("test", cluster.bootstrap))
    yield opened
    opened.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return the name of a topic of this test, which does not exist yet."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return name.strip("-")

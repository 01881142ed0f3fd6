"""One broker for all tests of a module: each test uses topics and groups of its own."""

from collections.abc import Iterator

import pytest

from ottla.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A running single-broker cluster with short heartbeats that keeps records of 1970."""
    options = {
        "log.retention.ms": "-1",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "200",
    }
    with Cluster(options=options) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of this test with three partitions."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name).strip("-")
    cluster.create_topic(name, partitions=3)
    return name

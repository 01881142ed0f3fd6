"""The pytest plugin: the fixture `ottla_cluster` starts a cluster for each test, by default of one
broker.

    def test_orders(ottla_cluster):
        ottla_cluster.create_topic("orders", partitions=3)
        settings = {"bootstrap.servers": ottla_cluster.bootstrap, "partitioner": "murmur2_random"}
        producer = Producer(settings)

To set broker options for a test, a class or a module, override the fixture `ottla_options`; for
more brokers, override `ottla_brokers`; for TLS or users, `ottla_security`. The broker is not
imported before the first test that uses it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from ottla import testing

if TYPE_CHECKING:
    from ottla.testing.cluster import Cluster


@pytest.fixture
def ottla_options() -> Mapping[str, str]:
    """Broker options for `ottla_cluster`, by their Kafka names; none by default."""
    return {}


@pytest.fixture
def ottla_brokers() -> int:
    """The number of brokers of `ottla_cluster`; 1 by default."""
    return 1


@pytest.fixture
def ottla_security() -> str | None:
    """The security of `ottla_cluster`: `ssl`, `sasl_plaintext`, `sasl_ssl`, or None, the default."""
    return None


@pytest.fixture
def ottla_cluster(
    ottla_options: Mapping[str, str], ottla_brokers: int, ottla_security: str | None
) -> "Iterator[Cluster]":
    """A running cluster on free ports, without topics; removed after the test."""
    with testing.Cluster(ottla_brokers, options=ottla_options, security=ottla_security) as cluster:
        yield cluster

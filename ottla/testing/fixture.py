"""The pytest plugin: the fixture `ottla_cluster` starts a cluster for each test, by default of one
broker.

    def test_orders(ottla_cluster):
        ottla_cluster.create_topic("orders", partitions=3)
        settings = {"bootstrap.servers": ottla_cluster.bootstrap, "partitioner": "murmur2_random"}
        producer = Producer(settings)

To set broker options for a test, a class or a module, override the fixture `ottla_options`; for
more brokers, override `ottla_brokers`; for TLS or users, `ottla_security`. `ottla_session` is one
cluster for all tests of the process, of which each test gets a topic from `ottla_topic`; its
options are of `ottla_session_options`. The broker is not imported before the first test that uses
it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import pytest

from ottla import testing

if TYPE_CHECKING:
    from ottla.testing.cluster import Cluster
    from ottla.testing.option_values import OptionValue

_TOPIC_NAME_MAX = 200


@pytest.fixture
def ottla_options() -> "Mapping[str, OptionValue]":
    """Broker options for `ottla_cluster`, by their Kafka names; none by default.

    Values are texts, numbers and booleans: `{"num.partitions": 3}`.
    """
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
    ottla_options: "Mapping[str, OptionValue]", ottla_brokers: int, ottla_security: str | None
) -> "Iterator[Cluster]":
    """A running cluster on free ports, without topics; removed after the test."""
    with testing.Cluster(ottla_brokers, options=ottla_options, security=ottla_security) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ottla_session_options() -> "Mapping[str, OptionValue]":
    """Broker options for `ottla_session`, by their Kafka names; none by default."""
    return {}


@pytest.fixture(scope="session")
def ottla_session(ottla_session_options: "Mapping[str, OptionValue]") -> "Iterator[Cluster]":
    """A running cluster of one broker for all tests of the process; each xdist worker has one."""
    with testing.Cluster(options=ottla_session_options) as cluster:
        yield cluster


@pytest.fixture
def ottla_topic(ottla_session: "Cluster", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic of `ottla_session`, deleted after the test."""
    words = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.name).strip("-")[:_TOPIC_NAME_MAX]
    names = ottla_session.topics()
    name = next(name for n in count(1) if (name := f"{words}-{n}") not in names)
    ottla_session.create_topic(name)
    yield name
    if name in ottla_session.topics():
        ottla_session.delete_topic(name)

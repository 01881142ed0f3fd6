"""The local engine of `ottla.streams` on Apache Kafka: results, restarts and rebalances."""

import pytest

from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from tests.compat import java
from tests.integration.streams.local.rebalancing import ONCE, run_instances

pytestmark = [pytest.mark.compat, pytest.mark.slow]


def test_instances_join_and_leave_on_apache_kafka() -> None:
    """Exactly once: the results of each key are 1, 2, 3… in order, as on Ottla."""
    node = java.shared_node("4.3.0", java.GROUPS_OF_ALL_TYPES)
    topics = ("local-words", "local-out")
    with Brokers(node.bootstrap) as brokers:
        for topic in topics:
            create_topic(brokers, topic, partitions=4, replication_factor=1)
    assert run_instances(node.bootstrap, "exactly_once_v2", topics) == ONCE

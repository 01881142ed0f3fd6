"""A script that deletes topics and creates them again at once, as demos and tests do."""

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry

pytestmark = pytest.mark.slow


def _topics(cluster: Cluster, *arguments: str) -> int:
    """Run kafka-topics; return its exit code."""
    line = [*arguments, "--topic", "again", "--bootstrap-server", cluster.bootstrap]
    return entry.run("kafka-topics", line)


def test_a_topic_is_deleted_and_created_again_100_times() -> None:
    """The name is free when `kafka-topics --delete` has ended."""
    with Cluster() as cluster:
        assert _topics(cluster, "--create") == 0
        for number in range(100):
            assert _topics(cluster, "--delete") == 0, number
            assert _topics(cluster, "--create") == 0, number


def test_a_topic_is_deleted_and_created_again_while_a_broker_is_down() -> None:
    """The broker that returns has only the new topic, and becomes a replica of it."""
    with Cluster(brokers=3) as cluster:
        assert _topics(cluster, "--create", "--replication-factor", "3") == 0
        cluster.kill(3)
        for number in range(10):
            assert _topics(cluster, "--delete") == 0, number
            assert _topics(cluster, "--create", "--replication-factor", "2") == 0, number
        cluster.restart(3)
        assert _topics(cluster, "--delete") == 0
        assert _topics(cluster, "--create", "--replication-factor", "3") == 0
        cluster.wait_in_sync("again")
        folders = cluster.node(3).broker.replicas.directories.logs()
        assert [key[0] for key in folders] == ["again"]

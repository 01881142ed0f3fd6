"""A controller that dies with kill -9: clients reach its successor before its session ends."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.process.broker_cluster import BrokerCluster
from tests.process.zookeeper_servers import zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.needs("zookeeper")]
_SECONDS = 20
_OPTIONS = {"zookeeper.session.timeout.ms": "18000"}


def test_librdkafka_finds_the_successor_of_a_killed_controller(tmp_path: Path) -> None:
    """librdkafka waits for the controller that Metadata names, so Metadata must not name a dead
    one.
    """
    with (
        zookeeper(tmp_path / "zookeeper") as server,
        BrokerCluster(tmp_path, zookeeper=server.address, options=_OPTIONS) as cluster,
    ):
        cluster.kill(cluster.controller())
        addresses = (f"{cluster.host(n)}:{cluster.port(n)}" for n in cluster.running)
        client = AdminClient({"bootstrap.servers": ",".join(addresses), "log_level": 0})
        timeouts = {"request_timeout": _SECONDS, "operation_timeout": _SECONDS}
        created = client.create_topics([NewTopic("orders", 3, 2)], **timeouts)
        created["orders"].result(_SECONDS)
        assert len(cluster.partitions("orders")) == 3

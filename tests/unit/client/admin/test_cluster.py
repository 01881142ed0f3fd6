"""The description of the cluster."""

from typing import Any

from ottla.client.admin.cluster import Broker, describe_cluster
from ottla.client.brokers import Brokers
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse


def test_brokers_are_described_in_order(cluster: Any, brokers: Brokers) -> None:
    """The description has the cluster id, the controller, and the address of each broker."""
    cluster.answers["DescribeCluster"] = lambda request: DescribeClusterResponse(
        cluster_id="abc",
        controller_id=2,
        brokers=[
            DescribeClusterBroker(broker_id=2, host="b", port=2, rack="r"),
            DescribeClusterBroker(broker_id=1, host="a", port=1),
        ],
    )
    description = describe_cluster(brokers)
    assert (description.cluster_id, description.controller_id) == ("abc", 2)
    assert description.brokers == (Broker(1, "a", 1, None), Broker(2, "b", 2, "r"))

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


def test_fenced_brokers_are_described_on_request(cluster: Any, brokers: Brokers) -> None:
    """A fenced broker is registered, but not running (KIP-1073)."""
    cluster.answers["DescribeCluster"] = lambda request: DescribeClusterResponse(
        brokers=[DescribeClusterBroker(broker_id=1, host="a", port=1, is_fenced=True)]
        if request.include_fenced_brokers
        else []
    )
    assert describe_cluster(brokers).brokers == ()
    fenced = describe_cluster(brokers, include_fenced_brokers=True).brokers
    assert fenced == (Broker(1, "a", 1, None, is_fenced=True),)

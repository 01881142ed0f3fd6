"""DescribeCluster: the brokers and the controller."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server import operations
from ottla.server.handlers import describe_cluster
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from tests.handlers.logs import NODE, OTHER, LogsBroker

VERSIONS = range(describe_cluster.MIN_VERSION, describe_cluster.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_brokers_and_controller(broker: LogsBroker, version: int) -> None:
    """Every version returns the cluster id, the controller and the addresses of brokers."""
    response = await broker.ask(describe_cluster, DescribeClusterRequest(), version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (
        0,
        "cluster",
        NODE,
    )
    brokers = [(item.broker_id, item.host, item.port, item.rack) for item in response.brokers]
    assert brokers == [(NODE, "127.0.0.1", 7, "r1"), (OTHER, "b2", 9093, None)]
    assert response.cluster_authorized_operations == operations.NOT_ASKED


async def test_operations_are_returned_on_request(broker: LogsBroker) -> None:
    """Without an authorizer all operations are allowed."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = await broker.ask(describe_cluster, request, 0)
    assert response.cluster_authorized_operations == operations.ON_CLUSTER


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_other_endpoint_types_are_rejected(
    broker: LogsBroker, kind: int, code: ErrorCode
) -> None:
    """This is a broker's endpoint, not a controller's (KIP-919)."""
    response = await broker.ask(describe_cluster, DescribeClusterRequest(endpoint_type=kind), 1)
    assert response.error_code == code
    assert response.error_message

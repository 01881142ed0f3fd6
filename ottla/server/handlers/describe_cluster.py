"""DescribeCluster (key 60), versions 0-2: the brokers and the controller (KIP-700).

v0: brokers. v1: endpoint type (KIP-919). v2: fenced brokers (KIP-1073); no broker is fenced.

Not done: endpoint type 2 (controllers) is refused: every broker can be the controller.
"""

from ottla.base.errors import ErrorCode
from ottla.server import operations
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

API = ApiKey.DESCRIBE_CLUSTER
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(needs_metadata=True)

_BROKERS = 1
_CONTROLLERS = 2


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return every live broker at the address where this client reaches it."""
    if request.endpoint_type != _BROKERS:
        return _refuse(request.endpoint_type)
    image = context.broker.image
    brokers = []
    for broker in image.brokers.values():
        address = context.address_of(broker)
        if address is not None:
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker.id, host=address[0], port=address[1], rack=broker.rack
                )
            )
    allowed = operations.NOT_ASKED
    if request.include_cluster_authorized_operations:
        allowed = operations.on_cluster(context.access)
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.current.controller_id,
        brokers=brokers,
        cluster_authorized_operations=allowed,
    )


def _refuse(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=int(ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            error_message="This is a broker endpoint, not a controller endpoint.",
        )
    return DescribeClusterResponse(
        error_code=int(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        error_message=f"Unknown endpoint type {endpoint_type}.",
    )

"""DescribeCluster (API key 60): cluster id, controller and brokers (KIP-700).

Versions 0-2, flexible; what each one added:

    1     endpoint type: brokers or controllers (KIP-919)
    2     fenced brokers on request (KIP-1073)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, api_key=60, versions=(0, 2), flexible_since=0):
    """Request of DescribeCluster."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


class DescribeClusterBroker(Struct):
    """An element of `brokers`."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)
    is_fenced: bool = boolean(since=2)


class DescribeClusterResponse(Message, api_key=60, versions=(0, 2), flexible_since=0):
    """Response of DescribeCluster."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-0x80000000)

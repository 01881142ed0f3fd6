"""FindCoordinator (API key 10): which broker coordinates a group, a transactional id or a share
partition.

Versions 0-6; what each one added:

    1     key type (0 group, 1 transaction, 2 share); throttle time, error message
    3     flexible
    4     many keys at once (KIP-699)
    5     TRANSACTION_ABORTABLE may be returned (KIP-890)
    6     share partitions (KIP-932)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions=(0, 6), flexible_since=3):
    """Request of FindCoordinator."""

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array(string, since=4)


class Coordinator(Struct):
    """An element of `coordinators`."""

    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class FindCoordinatorResponse(Message, api_key=10, versions=(0, 6), flexible_since=3):
    """Response of FindCoordinator."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable_since=0, ignorable=True)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)

"""SyncGroup (API key 14): hand in (leader) and fetch (all) the assignment of a generation.

Versions 0-5; what each one added:

    1     throttle time
    3     static members (KIP-345)
    4     flexible
    5     protocol type and name, checked by the broker (KIP-559)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, octets, string


class SyncGroupRequestAssignment(Struct):
    """An element of `assignments`."""

    member_id: str = string()
    assignment: bytes = octets()


class SyncGroupRequest(Message, api_key=14, versions=(0, 5), flexible_since=4):
    """Request of SyncGroup."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=0, default=None)
    protocol_type: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, api_key=14, versions=(0, 5), flexible_since=4):
    """Response of SyncGroup."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)
    assignment: bytes = octets()

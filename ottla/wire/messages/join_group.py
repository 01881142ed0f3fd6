"""JoinGroup (API key 11): enter a group or a new generation of it; the response follows when the
generation is complete.

Versions 0-9; what each one added:

    1     rebalance timeout
    2     throttle time
    4     MEMBER_ID_REQUIRED: join again with the id given (KIP-394)
    5     static members (KIP-345)
    6     flexible
    7     protocol type in the response (KIP-559)
    8     reason (KIP-800)
    9     the response may ask the leader to skip the assignment (KIP-814)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, octets, string


class JoinGroupRequestProtocol(Struct):
    """An element of `protocols`."""

    name: str = string()
    metadata: bytes = octets()


class JoinGroupRequest(Message, api_key=11, versions=(0, 9), flexible_since=6):
    """Request of JoinGroup."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=0, default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable_since=0, default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """An element of `members`."""

    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)
    metadata: bytes = octets()


class JoinGroupResponse(Message, api_key=11, versions=(0, 9), flexible_since=6):
    """Response of JoinGroup."""

    throttle_time_ms: int = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable_since=0, default=None, ignorable=True)
    protocol_name: str | None = string(nullable_since=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)

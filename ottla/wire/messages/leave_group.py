"""LeaveGroup (API key 13): leave a group.

Versions 0-5; what each one added:

    1     throttle time
    3     several members at once, by member id or instance id (KIP-345)
    4     flexible
    5     reason (KIP-800)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    """An element of `members`."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable_since=0, default=None)
    reason: str | None = string(since=5, nullable_since=0, default=None, ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions=(0, 5), flexible_since=4):
    """Request of LeaveGroup."""

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


class MemberResponse(Struct):
    """An element of `members`."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable_since=0)
    error_code: int = int16()


class LeaveGroupResponse(Message, api_key=13, versions=(0, 5), flexible_since=4):
    """Response of LeaveGroup."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)

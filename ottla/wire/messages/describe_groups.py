"""DescribeGroups (API key 15): state, protocol and members of groups.

Versions 0-6; what each one added:

    1     throttle time
    3     authorized operations (KIP-430)
    4     static members (KIP-345)
    5     flexible
    6     GROUP_ID_NOT_FOUND and error message instead of state Dead (KIP-1043)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, octets, string


class DescribeGroupsRequest(Message, api_key=15, versions=(0, 6), flexible_since=5):
    """Request of DescribeGroups."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(since=3)


class DescribedGroupMember(Struct):
    """An element of `members`."""

    member_id: str = string()
    group_instance_id: str | None = string(since=4, nullable_since=0, default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = octets()
    member_assignment: bytes = octets()


class DescribedGroup(Struct):
    """An element of `groups`."""

    error_code: int = int16()
    error_message: str | None = string(since=6, nullable_since=0, default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(since=3, default=-0x80000000)


class DescribeGroupsResponse(Message, api_key=15, versions=(0, 6), flexible_since=5):
    """Response of DescribeGroups."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)

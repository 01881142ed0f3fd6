"""ListGroups (API key 16): the groups that a broker coordinates.

Versions 0-5; what each one added:

    1     throttle time
    3     flexible
    4     filter by state, state in the response (KIP-518)
    5     filter by type, type in the response (KIP-848)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions=(0, 5), flexible_since=3):
    """Request of ListGroups."""

    states_filter: list[str] = array(string, since=4)
    types_filter: list[str] = array(string, since=5)


class ListedGroup(Struct):
    """An element of `groups`."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4, ignorable=True)
    group_type: str = string(since=5, ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions=(0, 5), flexible_since=3):
    """Response of ListGroups."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)

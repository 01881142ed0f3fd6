"""DeleteGroups (API key 42): delete empty groups with their offsets.

Versions 0-2; what each one added:

    2     flexible
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions=(0, 2), flexible_since=2):
    """Request of DeleteGroups."""

    groups_names: list[str] = array(string)


class DeletableGroupResult(Struct):
    """An element of `results`."""

    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Message, api_key=42, versions=(0, 2), flexible_since=2):
    """Response of DeleteGroups."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)

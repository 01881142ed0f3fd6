"""DeleteAcls (API key 31): delete access rules that match filters.

Versions 1-3; what each one added:

    1     pattern type (KIP-290)
    2     flexible
    3     user resources (KIP-373)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    """An element of `filters`."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable_since=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable_since=0)
    host_filter: str | None = string(nullable_since=0)
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsRequest(Message, api_key=31, versions=(1, 3), flexible_since=2):
    """Request of DeleteAcls."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    """An element of `matching_acls`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsFilterResult(Struct):
    """An element of `filter_results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Message, api_key=31, versions=(1, 3), flexible_since=2):
    """Response of DeleteAcls."""

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)

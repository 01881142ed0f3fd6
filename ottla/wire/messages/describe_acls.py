"""DescribeAcls (API key 29): list access rules that match a filter.

Versions 1-3; what each one added:

    1     pattern type (KIP-290)
    2     flexible
    3     user resources (KIP-373)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Message, api_key=29, versions=(1, 3), flexible_since=2):
    """Request of DescribeAcls."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable_since=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable_since=0)
    host_filter: str | None = string(nullable_since=0)
    operation: int = int8()
    permission_type: int = int8()


class AclDescription(Struct):
    """An element of `acls`."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResource(Struct):
    """An element of `resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Message, api_key=29, versions=(1, 3), flexible_since=2):
    """Response of DescribeAcls."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)

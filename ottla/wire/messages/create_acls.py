"""CreateAcls (API key 30): add access rules.

Versions 1-3; what each one added:

    1     pattern type (KIP-290)
    2     flexible
    3     user resources (KIP-373)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    """An element of `creations`."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class CreateAclsRequest(Message, api_key=30, versions=(1, 3), flexible_since=2):
    """Request of CreateAcls."""

    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Struct):
    """An element of `results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class CreateAclsResponse(Message, api_key=30, versions=(1, 3), flexible_since=2):
    """Response of CreateAcls."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)

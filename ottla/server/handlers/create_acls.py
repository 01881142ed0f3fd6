"""CreateAcls (key 30), versions 1-3: add access control lists (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). Without an authorizer every entry is
SECURITY_DISABLED. An entry that exists is no error.

Not done: nothing.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.acls import AclBinding
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

API = ApiKey.CREATE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Add each entry that is valid."""
    if context.access is None:
        refusal = ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
        return CreateAclsResponse(results=[_result(refusal) for _ in request.creations])
    bindings = [_binding(creation) for creation in request.creations]
    if any(binding.is_filter for binding in bindings):
        refusal = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Types and operations must not be ANY.")
        return CreateAclsResponse(results=[_result(refusal) for _ in bindings])
    errors = await context.access.authorizer.create(bindings)
    return CreateAclsResponse(results=[_result(error) for error in errors])


def _binding(creation: AclCreation) -> AclBinding:
    return AclBinding.of_codes(
        (creation.resource_type, creation.resource_name, creation.resource_pattern_type),
        (creation.principal, creation.host, creation.operation, creation.permission_type),
    )


def _result(error: ApiError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=int(error.code), error_message=error.message)

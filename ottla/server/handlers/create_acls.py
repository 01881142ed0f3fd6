"""CreateAcls (key 30), versions 1-3: add access control lists (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). As in Apache Kafka without an authorizer, every
entry is SECURITY_DISABLED.

Not done: an authorizer. Every client may do everything on every listener.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

API = ApiKey.CREATE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3


def handle(_context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Refuse each entry: nothing would enforce it."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(
                error_code=int(ErrorCode.SECURITY_DISABLED),
                error_message="No Authorizer is configured on the broker",
            )
            for _ in request.creations
        ]
    )

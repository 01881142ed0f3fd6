"""DeleteAcls (key 31), versions 1-3: delete access control lists (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). As in Apache Kafka without an authorizer, every
filter is SECURITY_DISABLED.

Not done: an authorizer. Every client may do everything on every listener.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

API = ApiKey.DELETE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3


def handle(_context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Refuse each filter: there are no lists."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                error_code=int(ErrorCode.SECURITY_DISABLED),
                error_message="No Authorizer is configured.",
            )
            for _ in request.filters
        ]
    )

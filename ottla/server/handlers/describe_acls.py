"""DescribeAcls (key 29), versions 1-3: the access control lists that match a filter (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). As in Apache Kafka without an authorizer, every
request is SECURITY_DISABLED.

Not done: an authorizer. Every client may do everything on every listener.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)

API = ApiKey.DESCRIBE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3


def handle(_context: RequestContext, _request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Refuse: there are no lists."""
    return DescribeAclsResponse(
        error_code=int(ErrorCode.SECURITY_DISABLED),
        error_message="No Authorizer is configured on the broker",
    )

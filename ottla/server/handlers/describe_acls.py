"""DescribeAcls (key 29), versions 1-3: the access control lists that match a filter (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). Without an authorizer every request is
SECURITY_DISABLED.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclBinding, ResourcePattern
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

API = ApiKey.DESCRIBE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the entries that match, by pattern."""
    if context.access is None:
        return DescribeAclsResponse(
            error_code=int(ErrorCode.SECURITY_DISABLED),
            error_message="No Authorizer is configured on the broker",
        )
    wanted = AclBinding.of_codes(
        (request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter),
        (request.principal_filter, request.host_filter, request.operation, request.permission_type),
    )
    resources: dict[ResourcePattern, DescribeAclsResource] = {}
    for pattern, entry in context.access.authorizer.store.lists.matching(wanted):
        resource = resources.setdefault(
            pattern,
            DescribeAclsResource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name or "",
                pattern_type=pattern.pattern_type,
            ),
        )
        resource.acls.append(
            AclDescription(
                principal=entry.principal or "",
                host=entry.host or "",
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))

"""DescribeGroups (key 15), versions 0-6: state, protocol and members of groups.

v3: authorized operations (KIP-430). v4: static members. v5: flexible. v6: GROUP_ID_NOT_FOUND
instead of the state Dead (KIP-1043).

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.server import operations
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

API = ApiKey.DESCRIBE_GROUPS
MIN_VERSION = 0
MAX_VERSION = 6


def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe the groups that this broker coordinates."""
    response = context.broker.groups.describe_groups(request, api_version=context.api_version)
    if request.include_authorized_operations:
        for group in response.groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = operations.on_group(context.access, group.group_id)
    return response

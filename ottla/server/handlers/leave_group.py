"""LeaveGroup (key 13), versions 0-5: leave a group, or remove members from it.

v3: several members, by member id or instance id (KIP-345). v4: flexible. v5: reason (KIP-800).
Before v3 the error of the only member is the error of the response.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply, shaped
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.wire.schema import first_version

API = ApiKey.LEAVE_GROUP
MIN_VERSION = 0
MAX_VERSION = 5

_FIRST_VERSION_WITH_MEMBERS = first_version(LeaveGroupRequest, "members")


def handle(context: RequestContext, request: LeaveGroupRequest) -> Reply[LeaveGroupResponse]:
    """Convert requests of old versions to the new form, and the response back."""
    if context.api_version >= _FIRST_VERSION_WITH_MEMBERS:
        return context.broker.groups.membership.leave_group(request)
    request.members = [MemberIdentity(member_id=request.member_id)]
    return shaped(context.broker.groups.membership.leave_group(request), _of_one_member)


def _of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    code = response.error_code
    if code == ErrorCode.NONE and response.members:
        code = response.members[0].error_code
    return LeaveGroupResponse(error_code=code)

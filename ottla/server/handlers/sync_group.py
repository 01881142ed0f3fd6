"""SyncGroup (key 14), versions 0-5: fetch the assignment; the leader sends all members'
assignments.

v3: static members (KIP-345). v4: flexible. v5: protocol type and name are checked (KIP-559). The
response is sent when the leader's assignments are stored.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.schema import first_version

API = ApiKey.SYNC_GROUP
MIN_VERSION = 0
MAX_VERSION = 5

_FIRST_VERSION_WITH_PROTOCOL = first_version(SyncGroupRequest, "protocol_type")


def handle(context: RequestContext, request: SyncGroupRequest) -> Reply[SyncGroupResponse]:
    """Pass the sync to the group's coordinator; v5 requires protocol type and name."""
    is_named = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _FIRST_VERSION_WITH_PROTOCOL and not is_named:
        return SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    return context.broker.groups.membership.sync_group(request)

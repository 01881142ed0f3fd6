"""JoinGroup (key 11), versions 0-9: enter a group or its next generation.

v1: rebalance timeout. v4: MEMBER_ID_REQUIRED (KIP-394). v5: static members (KIP-345). v6: flexible.
v7: protocol type (KIP-559). v8: reason (KIP-800). v9: skip_assignment (KIP-814). The response is
sent when the generation has all its members.

Not done: nothing.
"""

from ottla.coordinators.replies import Reply, shaped
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.schema import first_version_with_null

API = ApiKey.JOIN_GROUP
MIN_VERSION = 0
MAX_VERSION = 9

_FIRST_VERSION_WITH_NULL = first_version_with_null(JoinGroupResponse, "protocol_name")


def handle(context: RequestContext, request: JoinGroupRequest) -> Reply[JoinGroupResponse]:
    """Pass the join to the group's coordinator."""
    reply = context.broker.groups.membership.join_group(
        request,
        api_version=context.api_version,
        client_id=context.client_id or "",
        # Java prints an address without a host name like this, and tools show it unchanged.
        client_host=f"/{context.connection.peer_address[0]}",
        may_describe=None if context.access is None else context.access.shows_topic,
    )
    return reply if context.api_version < _FIRST_VERSION_WITH_NULL else shaped(reply, _without_name)


def _without_name(response: JoinGroupResponse) -> JoinGroupResponse:
    """Return null if no protocol was chosen; older versions require an empty name."""
    response.protocol_name = response.protocol_name or None
    return response

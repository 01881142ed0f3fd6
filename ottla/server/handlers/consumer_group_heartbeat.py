"""ConsumerGroupHeartbeat (key 68), versions 0-1: membership in groups of the consumer protocol.

KIP-848: the member sends its subscription and its current assignment, the coordinator returns the
target assignment. v1: regular expressions; the member generates its own id (KIP-1082).
UNSUPPORTED_VERSION if group.version is 0 or group.coordinator.rebalance.protocols does not name the
protocol.

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.features import GROUP_VERSION
from ottla.coordinators.replies import Reply
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from ottla.coordinators.consumer import transition
else:
    transition = deferred_module("ottla.coordinators.consumer.transition")

API = ApiKey.CONSUMER_GROUP_HEARTBEAT
MIN_VERSION = 0
MAX_VERSION = 1

# The coordinator compares them with the topics of the cluster at a stretch. A regular expression
# may match more.
_NAMES_MAX = 15_000


def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Reply[ConsumerGroupHeartbeatResponse]:
    """Pass the heartbeat to the group's coordinator."""
    groups = context.broker.groups
    is_on = context.broker.features.level(GROUP_VERSION) > 0
    if not is_on or not groups.settings().consumer.is_enabled:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names_count = len(request.subscribed_topic_names or ())
    if names_count > _NAMES_MAX:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"{names_count} topics are subscribed to; {_NAMES_MAX} are allowed.",
        )
    client = transition.Client(
        context.client_id or "",
        # Java prints an address without a host name like this, and tools show it unchanged.
        f"/{context.connection.peer_address[0]}",
        None if context.access is None else context.access.shows_topic,
    )
    return groups.membership.consumer_heartbeat(
        request, api_version=context.api_version, client=client
    )

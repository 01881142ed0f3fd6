"""Heartbeat (key 12), versions 0-4: keep a membership alive and learn of rebalances.

v3: static members (KIP-345). v4: flexible.

Not done: nothing.
"""

from ottla.coordinators.replies import Reply
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

API = ApiKey.HEARTBEAT
MIN_VERSION = 0
MAX_VERSION = 4


def handle(context: RequestContext, request: HeartbeatRequest) -> Reply[HeartbeatResponse]:
    """Pass the heartbeat to the group's coordinator."""
    return context.broker.groups.membership.heartbeat(request)

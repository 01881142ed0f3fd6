"""DeleteGroups (key 42), versions 0-2: delete empty groups with their offsets.

v2: flexible.

Not done: nothing.
"""

from ottla.coordinators.replies import Reply
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

API = ApiKey.DELETE_GROUPS
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)


def handle(context: RequestContext, request: DeleteGroupsRequest) -> Reply[DeleteGroupsResponse]:
    """Delete the groups that are empty; the response is sent when that is stored."""
    return context.broker.groups.delete_groups(request)

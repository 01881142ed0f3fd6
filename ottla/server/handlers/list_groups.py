"""ListGroups (key 16), versions 0-5: the groups that this broker coordinates.

v3: flexible. v4: filter by state, state in the response (KIP-518). v5: filter by type, type in the
response (KIP-848).

Not done: nothing.
"""

from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

API = ApiKey.LIST_GROUPS
MIN_VERSION = 0
MAX_VERSION = 5


def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups that match the filters."""
    return context.broker.groups.list_groups(request)

"""ListConfigResources (key 74), versions 0-1: what has options, by type (KIP-1142).

v0: client metrics subscriptions only (KIP-714). v1: the types that are asked for; none named stands
for all of them. A type that nobody knows is UNSUPPORTED_VERSION.

Not done: client metrics (16), groups (32) and broker loggers (8) have no options here: no names.
"""

from ottla.base.errors import ErrorCode
from ottla.server.config_store import ConfigResource as ResourceType
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

API = ApiKey.LIST_CONFIG_RESOURCES
MIN_VERSION = 0
MAX_VERSION = 1

_BROKER_LOGGER = 8
_CLIENT_METRICS = 16
_GROUP = 32
_TYPES = (ResourceType.TOPIC, ResourceType.BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Answer from the image."""
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    types = set(request.resource_types) or set(_TYPES)
    if not types.issubset(_TYPES):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    image = context.broker.image
    names = {
        ResourceType.BROKER: [str(broker_id) for broker_id in image.brokers],
        ResourceType.TOPIC: list(image.topics),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind, found in names.items()
            if kind in types
            for name in found
        ]
    )

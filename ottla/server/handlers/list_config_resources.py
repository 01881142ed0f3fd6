"""ListConfigResources (key 74), versions 0-1: the resources that have options, by type (KIP-1142).

v0: client metrics subscriptions only (KIP-714). v1: the requested types; an empty list means all of
them. An unknown type is UNSUPPORTED_VERSION.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.server.config.store import ConfigResource as ResourceType
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

_TYPES = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.GROUP,
)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Return the resources of the cluster image."""
    subscriptions = _named(context, ConfigNode.CLIENT_METRICS)
    if context.api_version == 0:
        return ListConfigResourcesResponse(
            config_resources=[ConfigResource(resource_name=name) for name in subscriptions]
        )
    types = set(request.resource_types) or set(_TYPES)
    if not types.issubset(_TYPES):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    image = context.broker.image
    names: dict[ResourceType, list[str]] = {
        ResourceType.CLIENT_METRICS: subscriptions,
        ResourceType.BROKER: [str(broker_id) for broker_id in image.brokers],
        ResourceType.BROKER_LOGGER: [str(broker_id) for broker_id in image.brokers],
        ResourceType.TOPIC: list(image.topics),
        ResourceType.GROUP: _named(context, ConfigNode.GROUPS),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind, resource_names in names.items()
            if kind in types
            for name in resource_names
        ]
    )


def _named(context: RequestContext, entity_type: str) -> list[str]:
    entities = context.broker.configs.entities(entity_type)
    return [ConfigNode.desanitize(path) or "" for path in entities]

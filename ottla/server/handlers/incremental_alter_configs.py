"""IncrementalAlterConfigs (key 44), versions 0-1: change single settings of topics and brokers
(KIP-339).

v1: flexible. SET, DELETE, APPEND and SUBTRACT; the last two on lists only. A broker named "" is the
cluster-wide default of all brokers. Bad values are INVALID_CONFIG for topics and INVALID_REQUEST
for brokers. When the answer is sent, this broker already acts on the change.

Not done: broker loggers (8), client metrics (16) and groups (32): INVALID_REQUEST. Unlike Kafka, a
broker option that nobody knows is refused instead of stored.
"""

from collections import Counter

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.controller.requests import Alteration, ConfigChange, ConfigRequest
from ottla.server.config_store import ConfigResource
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

API = ApiKey.INCREMENTAL_ALTER_CONFIGS
MIN_VERSION = 0
MAX_VERSION = 1


async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change each resource that is named once; each as a whole or not at all."""
    named = Counter((item.resource_type, item.resource_name) for item in request.resources)
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        responses.append(response)
        try:
            if named[resource.resource_type, resource.resource_name] > 1:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "Each resource may be named only once in a request."
                )
            await _alter(context, resource, request.validate_only)
        except ApiError as error:
            response.error_code, response.error_message = int(error.code), error.message
    return IncrementalAlterConfigsResponse(responses=responses)


async def _alter(
    context: RequestContext, resource: AlterConfigsResource, validate_only: bool
) -> None:
    entity_type, entity = _entity(context, resource)
    changes = tuple(_change(item) for item in resource.configs)
    (outcome,) = await context.broker.controller.alter_configs(
        [ConfigRequest(entity_type, entity, changes)], validate_only=validate_only
    )
    if outcome.error is not None:
        raise outcome.error
    if not validate_only:
        await context.broker.configs.refresh(entity_type, entity)


def _entity(context: RequestContext, resource: AlterConfigsResource) -> tuple[str, str]:
    """Return type and name of the resource as the tree has them."""
    name = resource.resource_name
    if resource.resource_type == ConfigResource.TOPIC:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Topics have no default that can be set.")
        return ConfigNode.TOPICS, name
    if resource.resource_type != ConfigResource.BROKER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Resources of type {resource.resource_type} cannot be configured here: "
            f"topics ({ConfigResource.TOPIC}) and brokers ({ConfigResource.BROKER}) can",
        )
    if not name:
        return ConfigNode.BROKERS, ConfigNode.DEFAULT
    if name != str(context.broker.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {context.broker.node_id}: it cannot configure {name!r}",
        )
    return ConfigNode.BROKERS, name


def _change(item: AlterableConfig) -> ConfigChange:
    try:
        alteration = Alteration(item.config_operation)
    except ValueError as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"There is no operation {item.config_operation}"
        ) from error
    return ConfigChange(item.name, alteration, item.value)

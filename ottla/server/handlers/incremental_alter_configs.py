"""IncrementalAlterConfigs (key 44), versions 0-1: change single settings of topics, brokers, client
metrics and groups (KIP-339), and levels of this broker's loggers (KIP-412).

v1: flexible. SET, DELETE, APPEND and SUBTRACT; the last two on lists only. A broker named "" is the
cluster-wide default of all brokers. Invalid values are INVALID_CONFIG for topics and groups and
INVALID_REQUEST for brokers. When the response is sent, this broker already applies the change.

Not done: the options of share and streams groups. Unlike Kafka, an unknown broker option is refused
instead of stored.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.controller.planning.requests import Alteration, ConfigChange
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.server.config import alteration
else:
    alteration = deferred_module("ottla.server.config.alteration")

API = ApiKey.INCREMENTAL_ALTER_CONFIGS
MIN_VERSION = 0
MAX_VERSION = 1
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change each resource that is named once; each as a whole or not at all."""
    occurrences = Counter(
        (resource.resource_type, resource.resource_name) for resource in request.resources
    )
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        response = AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        responses.append(response)
        try:
            alteration.check_named_once(key, occurrences)
            alteration.check_count(len(resource.configs))
            changes = _changes(resource)
            await alteration.alter(
                context.broker, key, changes, validate_only=request.validate_only
            )
        except ApiError as error:
            response.error_code, response.error_message = int(error.code), error.message
    return IncrementalAlterConfigsResponse(responses=responses)


def _changes(resource: AlterConfigsResource) -> tuple[ConfigChange, ...]:
    return tuple(_change(config) for config in resource.configs)


def _change(config: AlterableConfig) -> ConfigChange:
    try:
        alteration = Alteration(config.config_operation)
    except ValueError as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unknown operation {config.config_operation}"
        ) from error
    return ConfigChange(config.name, alteration, config.value)

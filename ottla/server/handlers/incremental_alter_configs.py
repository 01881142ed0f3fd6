"""IncrementalAlterConfigs (key 44), versions 0-1: change single settings of topics, brokers, client
metrics and groups (KIP-339), and levels of this broker's loggers (KIP-412).

v1: flexible. SET, DELETE, APPEND and SUBTRACT; the last two on lists only. A broker named "" is the
cluster-wide default of all brokers. Invalid values are INVALID_CONFIG for topics and groups and
INVALID_REQUEST for brokers. When the response is sent, this broker already applies the change.

An option that brokers do not know is stored, as in Kafka, and logged as a warning.

Not done: the options of share and streams groups.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.controller.planning.requests import Alteration, ConfigChange
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
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
    responses = await alteration.alter_each(
        context.broker, request, AlterConfigsResourceResponse, _change, replaces=False
    )
    return IncrementalAlterConfigsResponse(responses=responses)


def _change(config: AlterableConfig) -> ConfigChange:
    try:
        alteration = Alteration(config.config_operation)
    except ValueError as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unknown operation {config.config_operation}"
        ) from error
    return ConfigChange(config.name, alteration, config.value)

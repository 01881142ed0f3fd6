"""AlterConfigs (key 33), versions 0-2: replace all settings of topics, brokers, client metrics and
groups (KIP-133).

v1: the same. v2: flexible. Settings that the request does not name are reset to their defaults,
which is why clients prefer IncrementalAlterConfigs. A broker named "" is the cluster-wide default
of all brokers. An option that brokers do not know is stored, as in Kafka, and logged as a warning.

Not done: the options of share and streams groups. Broker loggers (8) are INVALID_REQUEST, as in
Kafka.
"""

from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.controller.planning.requests import Alteration, ConfigChange
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.server.config import alteration
else:
    alteration = deferred_module("ottla.server.config.alteration")

API = ApiKey.ALTER_CONFIGS
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the settings of each resource that is named once; each as a whole or not at all."""
    responses = await alteration.alter_each(
        context.broker, request, AlterConfigsResourceResponse, _change, replaces=True
    )
    return AlterConfigsResponse(responses=responses)


def _change(config: AlterableConfig) -> ConfigChange:
    return ConfigChange(config.name, Alteration.SET, config.value)

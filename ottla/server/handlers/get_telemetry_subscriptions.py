"""GetTelemetrySubscriptions (key 71), version 0: the metrics that a client shall push, and how
often (KIP-714).

A client without an id gets one. The requested metrics come from the config resources of type 16
(client metrics) that match the client; if none matches, the list of requested metrics is empty.

Advertised while there is a subscription: clients that connect later take part. (Kafka needs a
plug-in that receives metrics; Ottla keeps the latest payload of each client.)

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError
from ottla.base.loading import deferred_module
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.telemetry.clients import ACCEPTED_CODECS
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from ottla.server.telemetry import attributes
else:
    # Only brokers with subscriptions to client metrics need it.
    attributes = deferred_module("ottla.server.telemetry.attributes")

API = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
MIN_VERSION = 0
MAX_VERSION = 0
PROPERTIES = ApiProperties(is_for_client_metrics=True)


def handle(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the subscriptions in force; a client that asks too often is refused."""
    broker = context.broker
    try:
        subscription = broker.client_metrics.ask(
            request.client_instance_id,
            attributes.of(context.connection, context.client_id),
            broker.clock.monotonic() * 1000,
        )
    except ApiError as error:
        return GetTelemetrySubscriptionsResponse(error_code=int(error.code))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=subscription.instance_id,
        subscription_id=subscription.subscription_id,
        accepted_compression_types=list(ACCEPTED_CODECS),
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=broker.client_metrics.max_bytes,
        delta_temporality=True,
        requested_metrics=list(subscription.metrics),
    )

"""PushTelemetry (key 72), version 0: a client's metrics, as OpenTelemetry's MetricsData (KIP-714).

THROTTLING_QUOTA_EXCEEDED before the interval is over, UNKNOWN_SUBSCRIPTION_ID if the subscription
has changed, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE above telemetry.max.bytes (also
uncompressed), INVALID_RECORD for bytes that cannot be decompressed, INVALID_REQUEST after the
client has announced its termination.

The latest payload of each client is kept (32 MiB in all). The HTTP port of the broker shows it:
`/clients` as JSON, `/metrics/clients` for Prometheus.

Not done: metrics are not forwarded to another system.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError
from ottla.base.loading import deferred_module
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.telemetry.clients import Push
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from ottla.server.telemetry import attributes
else:
    # Only brokers with subscriptions to client metrics need it.
    attributes = deferred_module("ottla.server.telemetry.attributes")

API = ApiKey.PUSH_TELEMETRY
MIN_VERSION = 0
MAX_VERSION = 0
PROPERTIES = ApiProperties(is_for_client_metrics=True)


def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Store the payload, or return the error."""
    push = Push(
        instance_id=request.client_instance_id,
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        codec=request.compression_type,
        metrics=bytes(request.metrics),
    )
    now_ms = context.broker.clock.monotonic() * 1000
    try:
        context.broker.client_metrics.push(
            push, attributes.of(context.connection, context.client_id), now_ms
        )
    except ApiError as error:
        return PushTelemetryResponse(error_code=int(error.code))
    return PushTelemetryResponse()

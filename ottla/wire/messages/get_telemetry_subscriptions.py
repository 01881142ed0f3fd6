"""GetTelemetrySubscriptions (API key 71): which metrics a client is to push (KIP-714).

Version 0, flexible.
"""

from ottla.wire.schema import Message, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions=(0, 0), flexible_since=0):
    """GetTelemetrySubscriptions request; a client without an id sends the zero id."""

    client_instance_id: bytes = uuid()


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions=(0, 0), flexible_since=0):
    """GetTelemetrySubscriptions response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)

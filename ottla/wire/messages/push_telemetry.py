"""PushTelemetry (API key 72): the metrics of a client, as OpenTelemetry's bytes (KIP-714).

Version 0, flexible.
"""

from ottla.wire.schema import Message, boolean, int8, int16, int32, octets, uuid


class PushTelemetryRequest(Message, api_key=72, versions=(0, 0), flexible_since=0):
    """PushTelemetry request."""

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = octets()


class PushTelemetryResponse(Message, api_key=72, versions=(0, 0), flexible_since=0):
    """PushTelemetry response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()

"""UnregisterBroker (API key 64): remove a broker that is down from a KRaft cluster (KIP-500).

Version 0, flexible.
"""

from ottla.wire.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, api_key=64, versions=(0, 0), flexible_since=0):
    """Request of UnregisterBroker."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, api_key=64, versions=(0, 0), flexible_since=0):
    """Response of UnregisterBroker."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)

"""ExpireDelegationToken (API key 40): change when a token expires, or delete it (KIP-48).

Versions 1-2; what each one added:

    2     flexible
"""

from ottla.wire.schema import Message, int16, int32, int64, octets


class ExpireDelegationTokenRequest(Message, api_key=40, versions=(1, 2), flexible_since=2):
    """Request of ExpireDelegationToken."""

    hmac: bytes = octets()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Message, api_key=40, versions=(1, 2), flexible_since=2):
    """Response of ExpireDelegationToken."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()

"""RenewDelegationToken (API key 39): postpone the expiry of a token (KIP-48).

Versions 1-2; what each one added:

    2     flexible
"""

from ottla.wire.schema import Message, int16, int32, int64, octets


class RenewDelegationTokenRequest(Message, api_key=39, versions=(1, 2), flexible_since=2):
    """Request of RenewDelegationToken."""

    hmac: bytes = octets()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, api_key=39, versions=(1, 2), flexible_since=2):
    """Response of RenewDelegationToken."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()

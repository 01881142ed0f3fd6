"""SaslAuthenticate (API key 36): one step of a SASL exchange.

Versions 0-2; what each one added:

    1     session lifetime (KIP-368)
    2     flexible
"""

from ottla.wire.schema import Message, int16, int64, octets, string


class SaslAuthenticateRequest(Message, api_key=36, versions=(0, 2), flexible_since=2):
    """Request of SaslAuthenticate."""

    auth_bytes: bytes = octets()


class SaslAuthenticateResponse(Message, api_key=36, versions=(0, 2), flexible_since=2):
    """Response of SaslAuthenticate."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    auth_bytes: bytes = octets()
    session_lifetime_ms: int = int64(since=1, ignorable=True)

"""CreateDelegationToken (API key 38): issue a token that logs in as its owner (KIP-48).

Versions 1-3; what each one added:

    2     flexible
    3     a token for another owner (KIP-373)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, octets, string


class CreatableRenewers(Struct):
    """An element of `renewers`."""

    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Message, api_key=38, versions=(1, 3), flexible_since=2):
    """Request of CreateDelegationToken."""

    owner_principal_type: str | None = string(since=3, nullable_since=3)
    owner_principal_name: str | None = string(since=3, nullable_since=3)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Message, api_key=38, versions=(1, 3), flexible_since=2):
    """Response of CreateDelegationToken."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = octets()
    throttle_time_ms: int = int32()

"""DescribeDelegationToken (API key 41): the tokens of some principals, or all (KIP-48).

Versions 1-3; what each one added:

    2     flexible
    3     the requester of each token (KIP-373)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, octets, string


class DescribeDelegationTokenOwner(Struct):
    """An element of `owners`."""

    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(Message, api_key=41, versions=(1, 3), flexible_since=2):
    """Request of DescribeDelegationToken."""

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, nullable_since=0
    )


class DescribedDelegationTokenRenewer(Struct):
    """An element of `renewers`."""

    principal_type: str = string()
    principal_name: str = string()


class DescribedDelegationToken(Struct):
    """An element of `tokens`."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = octets()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Message, api_key=41, versions=(1, 3), flexible_since=2):
    """Response of DescribeDelegationToken."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()

"""DescribeUserScramCredentials (API key 50): which SCRAM mechanisms users have (KIP-554).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class UserName(Struct):
    """An element of `users`."""

    name: str = string()


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions=(0, 0), flexible_since=0):
    """Request of DescribeUserScramCredentials."""

    users: list[UserName] | None = array(UserName, nullable_since=0)


class CredentialInfo(Struct):
    """An element of `credential_infos`."""

    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    """An element of `results`."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions=(0, 0), flexible_since=0):
    """Response of DescribeUserScramCredentials."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)

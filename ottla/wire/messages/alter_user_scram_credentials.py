"""AlterUserScramCredentials (API key 51): set or delete SCRAM credentials of users (KIP-554).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, octets, string


class ScramCredentialDeletion(Struct):
    """An element of `deletions`."""

    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Struct):
    """An element of `upsertions`."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = octets()
    salted_password: bytes = octets()


class AlterUserScramCredentialsRequest(Message, api_key=51, versions=(0, 0), flexible_since=0):
    """Request of AlterUserScramCredentials."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    """An element of `results`."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class AlterUserScramCredentialsResponse(Message, api_key=51, versions=(0, 0), flexible_since=0):
    """Response of AlterUserScramCredentials."""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)

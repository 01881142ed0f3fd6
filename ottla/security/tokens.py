"""Delegation tokens: credentials of a user that expire, for others to log in with (KIP-48). Pure.

The id of a token is a user of SCRAM, and its HMAC with the secret key of the cluster, in base64, is
the password. All times are milliseconds since the epoch. Follows DelegationTokenManagerZk of Apache
Kafka 3.9.
"""

import base64
import hashlib
import hmac
from collections.abc import Collection
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.principal import Principal, check_users
from ottla.security.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    credential_of,
)

_HMAC = "sha512"


class Token(NamedTuple):
    """A token. It expires at `expiry_ms`, which renewals postpone, at most to `max_ms`."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issue_ms: int
    max_ms: int
    expiry_ms: int

    def has_expired(self, now_ms: int) -> bool:
        """Return True if the token is of no use any more."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def concerns(self, principal: Principal) -> bool:
        """Return True for the owner, the requester and the renewers."""
        return principal in (self.owner, self.requester, *self.renewers)


class Lifetimes(NamedTuple):
    """The longest life of a token, and how long it lasts without a renewal, in milliseconds."""

    max_ms: int
    expiry_ms: int


def hmac_of(secret_key: str, token_id: str) -> bytes:
    """Return the HMAC of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), _HMAC)


def scram_credential(mechanism: ScramMechanism, token_hmac: bytes, salt: bytes) -> ScramCredential:
    """Return the credential with which a client that knows the HMAC logs in."""
    password = base64.b64encode(token_hmac)
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password, salt, ITERATIONS_MIN)
    return credential_of(mechanism, salt, salted, ITERATIONS_MIN)


def salt_of(secret_key: str, mechanism: ScramMechanism, token_id: str) -> bytes:
    """Return the salt of a token's credential, also for an id that no token has.

    It is the same on every broker and after a restart. Its hash function is another one than the
    HMAC's, so that no salt is a part of a HMAC.
    """
    text = f"{mechanism.mechanism_name} {token_id}"
    return hmac.digest(secret_key.encode(), text.encode(), "sha256")[:SALT_BYTES]


def issued(
    token_id: str,
    owner: Principal,
    requester: Principal,
    renewers: Collection[Principal],
    asked_ms: int,
    lifetimes: Lifetimes,
    now_ms: int,
) -> Token:
    """Return a new token that lives `asked_ms`, by default and at most the longest life.

    Raises ApiError INVALID_PRINCIPAL_TYPE if the owner or a renewer is not a user.
    """
    check_users([owner, *renewers])
    life_ms = min(asked_ms, lifetimes.max_ms) if asked_ms > 0 else lifetimes.max_ms
    max_ms = now_ms + life_ms
    expiry_ms = min(max_ms, now_ms + lifetimes.expiry_ms)
    return Token(token_id, owner, requester, tuple(renewers), now_ms, max_ms, expiry_ms)


def renewed(
    token: Token, principal: Principal, period_ms: int, lifetimes: Lifetimes, now_ms: int
) -> Token:
    """Return a token that expires in `period_ms`; a negative one is the default.

    Raises ApiError DELEGATION_TOKEN_OWNER_MISMATCH or DELEGATION_TOKEN_EXPIRED.
    """
    _check_owner(token, principal)
    _check_expiry(token, now_ms)
    chosen_ms = lifetimes.expiry_ms if period_ms < 0 else period_ms
    return token._replace(expiry_ms=min(token.max_ms, now_ms + chosen_ms))


def expired(token: Token, principal: Principal, period_ms: int, now_ms: int) -> Token | None:
    """Return a token that expires in `period_ms`; None if it expires now: a negative period.

    Raises ApiError DELEGATION_TOKEN_OWNER_MISMATCH or DELEGATION_TOKEN_EXPIRED.
    """
    _check_owner(token, principal)
    if period_ms < 0:
        return None
    _check_expiry(token, now_ms)
    return token._replace(expiry_ms=min(token.max_ms, now_ms + period_ms))


def _check_owner(token: Token, principal: Principal) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_expiry(token: Token, now_ms: int) -> None:
    if token.has_expired(now_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)

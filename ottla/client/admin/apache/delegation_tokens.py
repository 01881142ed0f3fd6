"""Delegation tokens: create, renew, expire and describe them (KIP-48, KIP-373).

The brokers need the option delegation.token.secret.key, and the client a connection with SASL or
with a certificate. A principal is a text such as "User:ann", or its type and its name.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.base.errors import ConfigError
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages import create_delegation_token as creating
from ottla.wire.messages import describe_delegation_token as describing
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

Principal = str | tuple[str, str]
BROKER_DEFAULT = -1
"""A lifetime or period that the brokers' options decide."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token, with its times in milliseconds since the epoch.

    `token_id` is the user and `hmac`, in base64, the password of a client that logs in with it.
    `requester` is empty if the broker is older than 3.3.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int


def create_delegation_token(
    brokers: Brokers,
    *,
    owner: Principal = "",
    renewers: Iterable[Principal] = (),
    max_lifetime_ms: int = BROKER_DEFAULT,
) -> DelegationToken:
    """Issue a token for the user of this connection, or for another owner.

    ApiError DELEGATION_TOKEN_AUTH_DISABLED if the brokers have no secret key,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if the connection is not authenticated.
    """
    chosen = [_split(renewer) for renewer in renewers]
    owner_type, owner_name = _split(owner) if owner else ("", "")
    request = creating.CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[
            creating.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in chosen
        ],
        max_lifetime_ms=max_lifetime_ms,
    )

    def attempt() -> DelegationToken:
        response = brokers.ask(request, creating.CreateDelegationTokenResponse)
        check(response.error_code)
        return DelegationToken(
            token_id=response.token_id,
            hmac=response.hmac,
            owner=_joined(response.principal_type, response.principal_name),
            requester=_joined(
                response.token_requester_principal_type, response.token_requester_principal_name
            ),
            renewers=tuple(f"{kind}:{name}" for kind, name in chosen),
            issue_ms=response.issue_timestamp_ms,
            expiry_ms=response.expiry_timestamp_ms,
            max_ms=response.max_timestamp_ms,
        )

    return brokers.retry(attempt)


def renew_delegation_token(
    brokers: Brokers, hmac: bytes, *, period_ms: int = BROKER_DEFAULT
) -> int:
    """Let a token expire `period_ms` from now, at most at its `max_ms`; return the time.

    ApiError DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, or
    DELEGATION_TOKEN_OWNER_MISMATCH if the user is neither owner nor renewer.
    """
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

    def attempt() -> int:
        response = brokers.ask(request, RenewDelegationTokenResponse)
        check(response.error_code)
        return int(response.expiry_timestamp_ms)

    return brokers.retry(attempt)


def expire_delegation_token(brokers: Brokers, hmac: bytes, *, period_ms: int = -1) -> int:
    """Let a token expire `period_ms` from now; return the time. By default it is deleted at once.

    ApiError as for `renew_delegation_token`.
    """
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)

    def attempt() -> int:
        response = brokers.ask(request, ExpireDelegationTokenResponse)
        check(response.error_code)
        return int(response.expiry_timestamp_ms)

    return brokers.retry(attempt)


def describe_delegation_tokens(
    brokers: Brokers, principals: Iterable[Principal] | None = None
) -> list[DelegationToken]:
    """Return the tokens that these principals own or may renew, or all that the user may describe.

    The oldest token is first.
    """
    tokens = unsorted_delegation_tokens(brokers, principals)
    return sorted(tokens, key=lambda token: (token.issue_ms, token.token_id))


def unsorted_delegation_tokens(
    brokers: Brokers, principals: Iterable[Principal] | None = None
) -> list[DelegationToken]:
    """Return the tokens as `describe_delegation_tokens` does, in the order of the broker."""
    rows = None
    if principals is not None:
        rows = [
            describing.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_split, principals)
        ]
    request = describing.DescribeDelegationTokenRequest(owners=rows)

    def attempt() -> list[DelegationToken]:
        response = brokers.ask(request, describing.DescribeDelegationTokenResponse)
        check(response.error_code)
        return [_token(row) for row in response.tokens]

    return brokers.retry(attempt)


def _token(row: describing.DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token_id=row.token_id,
        hmac=row.hmac,
        owner=_joined(row.principal_type, row.principal_name),
        requester=_joined(row.token_requester_principal_type, row.token_requester_principal_name),
        renewers=tuple(
            _joined(renewer.principal_type, renewer.principal_name) for renewer in row.renewers
        ),
        issue_ms=row.issue_timestamp,
        expiry_ms=row.expiry_timestamp,
        max_ms=row.max_timestamp,
    )


def _split(principal: Principal) -> tuple[str, str]:
    if isinstance(principal, tuple):
        return principal
    kind, _, name = principal.partition(":")
    if not kind or not name:
        raise ConfigError(f"{principal!r} is not a principal: write it like 'User:ann'")
    return kind, name


def _joined(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind else ""

"""ExpireDelegationToken: for the owner and the renewers of a token."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import create_delegation_token, expire_delegation_token
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from tests.handlers.logs import LogsBroker
from tests.handlers.tokens import HOUR_MS, REFUSED, creation, issue_tokens, login, send

VERSIONS = range(expire_delegation_token.MIN_VERSION, expire_delegation_token.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("period_ms", [-1, 60_000])
async def test_a_token_is_not_expired_on_a_plaintext_listener(
    broker: LogsBroker, version: int, period_ms: int
) -> None:
    """The error is Kafka's, and there is no new time of expiry."""
    request = ExpireDelegationTokenRequest(hmac=b"secret", expiry_time_period_ms=period_ms)
    response = await broker.ask(expire_delegation_token, request, version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.expiry_timestamp_ms == -1


async def expire(
    broker: LogsBroker, hmac: bytes, identity: object, period_ms: int = -1, version: int = 2
) -> tuple[ErrorCode, int]:
    """Return error and time of a response."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = await send(broker, expire_delegation_token, request, identity, version)
    return ErrorCode(response.error_code), response.expiry_timestamp_ms


async def hmac_of(broker: LogsBroker) -> bytes:
    """Return the HMAC of a token of ann that ben may renew."""
    ann = login(broker, "ann")
    response = await send(broker, create_delegation_token, creation("ben"), ann, 3)
    return bytes(response.hmac)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("user", ["ann", "ben"])
async def test_time_of_expiry_is_changed(broker: LogsBroker, user: str, version: int) -> None:
    """A negative period deletes the token, and the response has the time of now."""
    tokens = await issue_tokens(broker)
    hmac, now_ms = await hmac_of(broker), broker.clock.time_ms()
    user_login = login(broker, user)
    for period_ms, time_ms in ((9 * HOUR_MS, 2 * HOUR_MS), (60_000, 60_000), (-1, 0)):
        response = await expire(broker, hmac, user_login, period_ms, version)
        assert response == (ErrorCode.NONE, now_ms + time_ms)
    assert tokens.describe(None) == []


async def test_others_are_refused(broker: LogsBroker) -> None:
    """One is neither owner nor renewer, one has no name, and one has logged in with the token."""
    tokens = await issue_tokens(broker)
    hmac = await hmac_of(broker)
    before = tokens.describe(None)
    by_token = login(broker, "ann", is_by_token=True)
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    for identity, code in (
        *REFUSED,
        (by_token, not_allowed),
        (login(broker, "eve"), mismatch),
    ):
        assert await expire(broker, hmac, identity) == (code, -1)
    assert tokens.describe(None) == before


async def test_token_has_to_exist(broker: LogsBroker) -> None:
    """A broker without a secret key says that tokens are disabled."""
    ann = login(broker, "ann")
    disabled, missing = (
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    )
    assert await expire(broker, b"unknown", ann) == (disabled, -1)
    await issue_tokens(broker)
    assert await expire(broker, b"unknown", ann) == (missing, -1)

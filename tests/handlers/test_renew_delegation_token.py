"""RenewDelegationToken: refused, because no listener authenticates its clients."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import renew_delegation_token
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.handlers.logs import LogsBroker

VERSIONS = range(renew_delegation_token.MIN_VERSION, renew_delegation_token.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("period_ms", [-1, 60_000])
async def test_a_token_is_not_renewed_on_a_plaintext_listener(
    broker: LogsBroker, version: int, period_ms: int
) -> None:
    """The error is Kafka's, and there is no new time of expiry."""
    request = RenewDelegationTokenRequest(hmac=b"secret", renew_period_ms=period_ms)
    response = await broker.ask(renew_delegation_token, request, version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.expiry_timestamp_ms == -1

"""CreateDelegationToken: refused, because no listener authenticates its clients."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import create_delegation_token
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from tests.handlers.logs import LogsBroker

VERSIONS = range(create_delegation_token.MIN_VERSION, create_delegation_token.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_token_is_not_issued_on_a_plaintext_listener(
    broker: LogsBroker, version: int
) -> None:
    """The anonymous user is owner and requester; the response has no times and no secret."""
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(principal_type="User", principal_name="ben")],
        max_lifetime_ms=-1,
    )
    response = await broker.ask(create_delegation_token, request, version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (response.principal_type, response.principal_name) == ("User", "ANONYMOUS")
    times = (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms)
    assert times == (-1, -1, -1)
    assert (response.token_id, bytes(response.hmac)) == ("", b"")


@pytest.mark.parametrize(
    ("owner", "code", "answered"),
    [
        (("User", "anna"), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ("User", "anna")),
        (("User", ""), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ("User", "ANONYMOUS")),
        ((None, "anna"), ErrorCode.UNKNOWN_SERVER_ERROR, ("User", "ANONYMOUS")),
    ],
)
async def test_the_response_repeats_the_owner(
    broker: LogsBroker,
    owner: tuple[str | None, str],
    code: ErrorCode,
    answered: tuple[str, str],
) -> None:
    """A principal without a name is the requester, and one without a type an error, as in Kafka."""
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner[0], owner_principal_name=owner[1]
    )
    response = await broker.ask(create_delegation_token, request, 3)
    assert response.error_code == code
    assert (response.principal_type, response.principal_name) == answered
    requester = (response.token_requester_principal_type, response.token_requester_principal_name)
    assert requester == ("User", "ANONYMOUS")

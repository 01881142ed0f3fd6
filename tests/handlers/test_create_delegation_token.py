"""CreateDelegationToken: tokens for clients that have authenticated."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.authentication.identity import CertificateUser
from ottla.server.handlers import create_delegation_token
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from tests.handlers.logs import LogsBroker
from tests.handlers.tokens import HOUR_MS, REFUSED, creation, issue_tokens, login, send

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


@pytest.mark.parametrize("version", VERSIONS)
async def test_token_is_issued_to_a_user(broker: LogsBroker, version: int) -> None:
    """It is the user's own, with the times of the broker's options."""
    tokens = await issue_tokens(broker)
    ann = login(broker, "ann")
    response = await send(broker, create_delegation_token, creation("ben"), ann, version)
    now_ms = broker.clock.time_ms()
    assert response.error_code == ErrorCode.NONE
    assert (response.principal_type, response.principal_name) == ("User", "ann")
    times = (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms)
    assert times == (now_ms, now_ms + HOUR_MS, now_ms + 2 * HOUR_MS)
    requester = (response.token_requester_principal_type, response.token_requester_principal_name)
    assert requester == (("User", "ann") if version >= 3 else ("", ""))
    (issued,) = tokens.describe(None)
    assert (response.token_id, response.hmac) == (issued.token.token_id, issued.hmac)
    assert [renewer.text() for renewer in issued.token.renewers] == ["User:ben"]


async def test_token_is_issued_to_the_user_of_a_certificate(broker: LogsBroker) -> None:
    """TLS with a certificate is an authentication as good as SASL."""
    await issue_tokens(broker)
    identity = CertificateUser("CN=ann,O=x")
    response = await send(broker, create_delegation_token, creation(), identity, 3)
    assert (response.error_code, response.principal_name) == (ErrorCode.NONE, "CN=ann,O=x")


async def test_token_is_issued_for_another_owner(broker: LogsBroker) -> None:
    """A broker without an authorizer allows it, as Apache Kafka does."""
    await issue_tokens(broker)
    request = creation(lifetime_ms=HOUR_MS, owner_principal_type="User", owner_principal_name="ben")
    response = await send(broker, create_delegation_token, request, login(broker, "ann"), 3)
    assert (response.error_code, response.principal_name) == (ErrorCode.NONE, "ben")
    assert response.token_requester_principal_name == "ann"
    assert response.max_timestamp_ms == broker.clock.time_ms() + HOUR_MS


@pytest.mark.parametrize(("identity", "code"), REFUSED)
async def test_client_without_a_name_is_refused(
    broker: LogsBroker, identity: object, code: ErrorCode
) -> None:
    """TLS without a certificate does not suffice."""
    tokens = await issue_tokens(broker)
    response = await send(broker, create_delegation_token, creation(), identity, 3)
    assert (response.error_code, response.expiry_timestamp_ms) == (code, -1)
    assert tokens.describe(None) == []


async def test_client_with_a_token_is_issued_none(broker: LogsBroker) -> None:
    """A token that creates tokens would never end."""
    tokens = await issue_tokens(broker)
    identity = login(broker, "ann", is_by_token=True)
    response = await send(broker, create_delegation_token, creation(), identity, 3)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.principal_name == "ann"
    assert tokens.describe(None) == []


async def test_renewers_are_users(broker: LogsBroker) -> None:
    """Another type is refused before anything else about tokens."""
    request = creation()
    request.renewers = [CreatableRenewers(principal_type="Group", principal_name="ben")]
    response = await send(broker, create_delegation_token, request, login(broker, "ann"), 3)
    assert response.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("kind", ["", "user", "Group", "User:team"])
async def test_owner_is_a_user(broker: LogsBroker, kind: str) -> None:
    """Without an authorizer, too: a client with the token would be the user of the owner's name."""
    tokens = await issue_tokens(broker)
    request = creation(owner_principal_type=kind, owner_principal_name="admin")
    response = await send(broker, create_delegation_token, request, login(broker, "ann"), 3)
    assert response.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert (response.principal_type, response.principal_name) == (kind, "admin")
    assert tokens.describe(None) == []


async def test_broker_without_a_secret_key_issues_no_tokens(broker: LogsBroker) -> None:
    """The response has the user, and no times."""
    response = await send(broker, create_delegation_token, creation(), login(broker, "ann"), 3)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (response.principal_name, response.max_timestamp_ms) == ("ann", -1)

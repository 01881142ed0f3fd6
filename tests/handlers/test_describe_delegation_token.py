"""DescribeDelegationToken: tokens for clients that have authenticated."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import create_delegation_token, describe_delegation_token
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from tests.handlers.logs import LogsBroker
from tests.handlers.tokens import REFUSED, creation, issue_tokens, login, send

VERSIONS = range(describe_delegation_token.MIN_VERSION, describe_delegation_token.MAX_VERSION + 1)
ANNA = DescribeDelegationTokenOwner(principal_type="User", principal_name="anna")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("owners", [None, [], [ANNA]])
async def test_tokens_are_not_described_on_a_plaintext_listener(
    broker: LogsBroker, version: int, owners: list[DescribeDelegationTokenOwner] | None
) -> None:
    """The error is Kafka's for all owners, no owners, and one owner."""
    request = DescribeDelegationTokenRequest(owners=owners)
    response = await broker.ask(describe_delegation_token, request, version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.tokens == []


async def describe(
    broker: LogsBroker,
    identity: object,
    owners: list[DescribeDelegationTokenOwner] | None,
    version: int = 3,
) -> Any:
    """Return the response to a request."""
    request = DescribeDelegationTokenRequest(owners=owners)
    return await send(broker, describe_delegation_token, request, identity, version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_tokens_are_described(broker: LogsBroker, version: int) -> None:
    """With their HMACs: a user that describes a token can log in with it."""
    await issue_tokens(broker)
    ann = login(broker, "ann")
    made = await send(broker, create_delegation_token, creation("ben", "cid"), ann, 3)
    (token,) = (await describe(broker, ann, None, version)).tokens
    assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
    assert (token.principal_type, token.principal_name) == ("User", "ann")
    times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
    assert times == (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert [(row.principal_type, row.principal_name) for row in token.renewers] == [
        ("User", "ben"),
        ("User", "cid"),
    ]
    assert token.token_requester_principal_name == ("ann" if version >= 3 else "")


async def test_owners_select_tokens(broker: LogsBroker) -> None:
    """A token belongs to its owner, its requester and its renewers; an empty list selects no token."""
    await issue_tokens(broker)
    ann = login(broker, "ann")
    fields = {"owner_principal_type": "User", "owner_principal_name": "dan"}
    for request in (creation("anna"), creation(**fields)):
        await send(broker, create_delegation_token, request, ann, 3)
    for owners, count in (
        (None, 2),
        ([], 0),
        ([ANNA], 1),
        ([_user("ann")], 2),
        ([_user("dan")], 1),
        ([_user("eve")], 0),
        ([_user("eve"), _user("dan"), ANNA], 2),
        ([DescribeDelegationTokenOwner(principal_type="Group", principal_name="dan")], 0),
    ):
        response = await describe(broker, ann, owners)
        assert (response.error_code, len(response.tokens)) == (ErrorCode.NONE, count)


def _user(name: str) -> DescribeDelegationTokenOwner:
    return DescribeDelegationTokenOwner(principal_type="User", principal_name=name)


async def test_others_are_refused(broker: LogsBroker) -> None:
    """Clients without a name or with a token, and all of them without a secret key."""
    ann = login(broker, "ann")
    response = await describe(broker, ann, None)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    await issue_tokens(broker)
    by_token = login(broker, "ann", is_by_token=True)
    for identity, code in (
        *REFUSED,
        (by_token, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ):
        assert (await describe(broker, identity, None)).error_code == code

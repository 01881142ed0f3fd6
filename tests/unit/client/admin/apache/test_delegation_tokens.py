"""Delegation tokens: their principals, times and errors."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.brokers import Brokers
from ottla.wire.messages import describe_delegation_token as describing
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenResponse


def test_a_token_is_issued_for_another_owner(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The request has owner, renewers and lifetime; the response has times and the secret."""
    cluster.answers["CreateDelegationToken"] = lambda request: CreateDelegationTokenResponse(
        principal_type="User",
        principal_name="ann:b",
        token_requester_principal_type="User",
        token_requester_principal_name="root",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=3,
        token_id="id",
        hmac=b"secret",
    )
    token = tokens.create_delegation_token(
        brokers, owner="User:ann:b", renewers=["User:bob"], max_lifetime_ms=7
    )
    assert token == tokens.DelegationToken(
        "id", b"secret", "User:ann:b", "User:root", ("User:bob",), 1, 2, 3
    )
    assert "secret" not in repr(token)
    request = asked("CreateDelegationToken")
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "ann:b")
    assert [(row.principal_type, row.principal_name) for row in request.renewers] == [
        ("User", "bob")
    ]
    assert request.max_lifetime_ms == 7


def test_brokers_without_owners_of_tokens_issue_them(new_broker: Callable[..., Any]) -> None:
    """Version 2 has no owner (before KIP-373): the token is the user's own."""
    old = new_broker(versions={3: (0, 12), 18: (0, 3), 38: (1, 2)})
    old.answers["CreateDelegationToken"] = lambda request: CreateDelegationTokenResponse(
        principal_type="User", principal_name="ann", token_id="id"
    )
    with Brokers(old.bootstrap) as brokers:
        token = tokens.create_delegation_token(brokers)
    assert (token.owner, token.requester) == ("User:ann", "")


def test_a_token_is_renewed_and_expired(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """Both return the new time; by default a token expires at once."""
    cluster.answers["RenewDelegationToken"] = lambda request: RenewDelegationTokenResponse(
        expiry_timestamp_ms=9
    )
    cluster.answers["ExpireDelegationToken"] = lambda request: ExpireDelegationTokenResponse(
        expiry_timestamp_ms=8
    )
    assert tokens.renew_delegation_token(brokers, b"h", period_ms=5) == 9
    assert (asked("RenewDelegationToken").hmac, asked("RenewDelegationToken").renew_period_ms) == (
        b"h",
        5,
    )
    assert tokens.expire_delegation_token(brokers, b"h") == 8
    assert asked("ExpireDelegationToken").expiry_time_period_ms == -1


def test_tokens_are_described_by_principal(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The oldest token is first; without principals all tokens are described."""

    def answer(request: Any) -> describing.DescribeDelegationTokenResponse:
        renewer = describing.DescribedDelegationTokenRenewer(
            principal_type="User", principal_name="bob"
        )
        rows = [
            describing.DescribedDelegationToken(
                principal_type="User",
                principal_name="ann",
                token_id=f"id-{age}",
                issue_timestamp=age,
                renewers=[renewer],
            )
            for age in (2, 1)
        ]
        return describing.DescribeDelegationTokenResponse(tokens=rows)

    cluster.answers["DescribeDelegationToken"] = answer
    described = tokens.describe_delegation_tokens(brokers, ["User:ann"])
    assert [(row.token_id, row.renewers) for row in described] == [
        ("id-1", ("User:bob",)),
        ("id-2", ("User:bob",)),
    ]
    (owner,) = asked("DescribeDelegationToken").owners
    assert (owner.principal_type, owner.principal_name) == ("User", "ann")
    tokens.describe_delegation_tokens(brokers)
    assert asked("DescribeDelegationToken").owners is None


def test_a_principal_may_be_a_type_and_a_name(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """A pair is sent as it is, also without a name: the broker judges it."""
    cluster.answers["CreateDelegationToken"] = lambda request: CreateDelegationTokenResponse()
    token = tokens.create_delegation_token(brokers, owner=("", "ann"), renewers=[("User", "")])
    assert token.renewers == ("User:",)
    request = asked("CreateDelegationToken")
    assert (request.owner_principal_type, request.owner_principal_name) == ("", "ann")
    assert [(row.principal_type, row.principal_name) for row in request.renewers] == [("User", "")]


def test_tokens_are_in_the_order_of_the_broker(cluster: Any, brokers: Brokers) -> None:
    """As in Apache Kafka's script, they are not sorted."""
    cluster.answers["DescribeDelegationToken"] = lambda request: (
        describing.DescribeDelegationTokenResponse(
            tokens=[
                describing.DescribedDelegationToken(token_id=f"id-{age}", issue_timestamp=age)
                for age in (2, 3, 1)
            ]
        )
    )
    rows = tokens.unsorted_delegation_tokens(brokers, [("User", "ann")])
    assert [row.token_id for row in rows] == ["id-2", "id-3", "id-1"]


@pytest.mark.parametrize("text", ["ann", ":ann", "User:"])
def test_a_principal_has_type_and_name(cluster: Any, brokers: Brokers, text: str) -> None:
    """Nothing is requested for another text."""
    with pytest.raises(ConfigError, match=f"'{text}' is not a principal: write it like 'User:ann'"):
        tokens.create_delegation_token(brokers, owner=text)
    assert cluster.names() == []


def test_errors_of_tokens_are_raised(cluster: Any, brokers: Brokers) -> None:
    """The response has no message: it comes from the table of errors."""
    cluster.answers["DescribeDelegationToken"] = lambda request: (
        describing.DescribeDelegationTokenResponse(error_code=61)
    )
    with pytest.raises(ApiError, match="Delegation tokens are disabled") as caught:
        tokens.describe_delegation_tokens(brokers)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

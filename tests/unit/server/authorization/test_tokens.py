"""The checks of delegation tokens: tokens for others, and tokens of others."""

from types import SimpleNamespace
from typing import cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authentication.identity import CertificateUser
from ottla.server.authorization import tokens
from ottla.server.authorization.access import Access
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

Right = tuple[AclOperation, ResourceType, str]
CREATE: Right = (AclOperation.CREATE_TOKENS, ResourceType.USER, "User:ben")


def ann(*rights: Right, user: str = "ann") -> Access:
    """Return the rights of a user that has authenticated."""
    access = SimpleNamespace(
        requester=SimpleNamespace(principal=f"User:{user}"),
        connection=SimpleNamespace(identity=CertificateUser(user)),
        may=lambda *right: right in rights,
        shows=lambda kind, name, operation=AclOperation.DESCRIBE: (operation, kind, name) in rights,
    )
    return cast(Access, access)


def for_owner(name: str | None) -> CreateDelegationTokenRequest:
    """Return a request for a token of an owner; None for one's own."""
    return CreateDelegationTokenRequest(
        owner_principal_type=None if name is None else "User", owner_principal_name=name
    )


def test_token_for_another_owner_needs_a_right() -> None:
    """A token for oneself needs none (KIP-373)."""
    assert tokens.check_create_token(ann(), for_owner(None)) is None
    assert tokens.check_create_token(ann(), for_owner("ann")) is None
    assert tokens.check_create_token(ann(CREATE), for_owner("ben")) is None
    refusal = tokens.check_create_token(ann(), for_owner("ben"))
    assert refusal.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refusal.principal_name, refusal.token_requester_principal_name) == ("ben", "ann")


def test_client_that_may_not_request_tokens_gets_the_error_of_the_handler() -> None:
    """It says that the client has to authenticate."""
    assert tokens.check_create_token(ann(user="ANONYMOUS"), for_owner("ben")) is None


@pytest.mark.parametrize(
    ("rights", "ids"),
    [
        ((), ["own", "requested", "renewed"]),
        (
            ((AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "other"),),
            ["own", "requested", "renewed", "other"],
        ),
        (
            ((AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:ben"),),
            ["own", "requested", "renewed", "other"],
        ),
    ],
)
def test_tokens_of_others_are_hidden(rights: tuple[Right, ...], ids: list[str]) -> None:
    """An owner, a requester and a renewer see a token; others need a right."""

    def token(token_id: str, owner: str, requester: str = "ben") -> DescribedDelegationToken:
        return DescribedDelegationToken(
            principal_type="User",
            principal_name=owner,
            token_requester_principal_type="User",
            token_requester_principal_name=requester,
            token_id=token_id,
        )

    renewed = token("renewed", "ben")
    renewer = DescribedDelegationTokenRenewer(principal_type="User", principal_name="ann")
    renewed.renewers = [renewer]
    listed = [
        token("own", "ann"),
        token("requested", "ben", "ann"),
        renewed,
        token("other", "ben"),
    ]
    complete = tokens.check_describe_tokens(ann(*rights), DescribeDelegationTokenRequest())
    response = complete(DescribeDelegationTokenResponse(tokens=listed))
    assert [row.token_id for row in response.tokens] == ids

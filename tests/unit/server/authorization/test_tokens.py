"""The checks of delegation tokens: tokens for others, and tokens of others."""

from types import SimpleNamespace
from typing import cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclOperation, ResourceType
from ottla.security.principal import Principal
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
        requester=SimpleNamespace(principal=Principal("User", user)),
        connection=SimpleNamespace(identity=CertificateUser(user)),
        may=lambda *right: right in rights,
        shows=lambda kind, name, operation=AclOperation.DESCRIBE: (operation, kind, name) in rights,
    )
    return cast(Access, access)


def for_owner(name: str | None, kind: str = "User") -> CreateDelegationTokenRequest:
    """Return a request for a token of an owner; None for one's own."""
    return CreateDelegationTokenRequest(
        owner_principal_type=None if name is None else kind, owner_principal_name=name
    )


def test_token_for_another_owner_needs_a_right() -> None:
    """A token for oneself needs none (KIP-373)."""
    assert tokens.check_create_token(ann(), for_owner(None)) is None
    assert tokens.check_create_token(ann(), for_owner("ann")) is None
    assert tokens.check_create_token(ann(CREATE), for_owner("ben")) is None
    refusal = tokens.check_create_token(ann(), for_owner("ben"))
    assert refusal.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refusal.principal_name, refusal.token_requester_principal_name) == ("ben", "ann")


@pytest.mark.parametrize(
    ("user", "kind", "name"),
    [
        ("ann", "", "admin"),
        ("ann", "", "ann"),
        ("ann", "user", "ann"),
        ("ann", "Group", "admin"),
        # These principals have the same text as the requester.
        ("team:admin", "User:team", "admin"),
        (":ann", "User:", "ann"),
    ],
)
def test_owner_of_another_type_is_refused(user: str, kind: str, name: str) -> None:
    """The owner's name would be a user that the owner is not; no right allows that."""
    everything = SimpleNamespace(
        requester=SimpleNamespace(principal=Principal("User", user)),
        connection=SimpleNamespace(identity=CertificateUser(user)),
        may=lambda *_: True,
    )
    refusal = tokens.check_create_token(cast(Access, everything), for_owner(name, kind))
    assert refusal.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert (refusal.principal_type, refusal.principal_name) == (kind, name)
    assert refusal.token_requester_principal_name == user


def test_owner_with_a_colon_in_its_name_is_another_principal() -> None:
    """Types and names are compared, not the texts in which they are joined."""
    request = for_owner("admin", "User")
    refusal = tokens.check_create_token(ann(user="User:admin"), request)
    assert refusal.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert tokens.check_create_token(ann(user="a:b"), for_owner("a:b")) is None


@pytest.mark.parametrize(("kind", "name"), [("User:team", "admin"), ("", "User:team:admin")])
def test_token_of_another_type_is_not_that_of_a_user(kind: str, name: str) -> None:
    """Another program may have written a token whose owner has the text of a user."""
    token = DescribedDelegationToken(principal_type=kind, principal_name=name, token_id="x")
    complete = tokens.check_describe_tokens(
        ann((AclOperation.DESCRIBE_TOKENS, ResourceType.USER, f"{kind}:{name}"), user="team:admin"),
        DescribeDelegationTokenRequest(),
    )
    assert complete(DescribeDelegationTokenResponse(tokens=[token])).tokens == []


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

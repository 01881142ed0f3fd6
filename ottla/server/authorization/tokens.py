"""The checks of APIs of delegation tokens (KIP-48, KIP-373).

Owners and renewers need no permission, and the handlers check who may renew and expire a token.
"""

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authentication.identity import may_request_tokens
from ottla.server.authorization.access import Access
from ottla.server.authorization.guarding import Verdict
from ottla.wire.messages import create_delegation_token, describe_delegation_token


def check_create_token(
    access: Access, request: create_delegation_token.CreateDelegationTokenRequest
) -> Verdict:
    """CREATE_TOKENS of the owner if that is another principal."""
    is_refused_anyway = not may_request_tokens(access.connection)
    if not request.owner_principal_name or not request.owner_principal_type or is_refused_anyway:
        return None
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    requester = access.requester.principal
    if owner == requester or access.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return None
    kind, _, name = requester.partition(":")
    return create_delegation_token.CreateDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
        principal_type=request.owner_principal_type,
        principal_name=request.owner_principal_name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def check_describe_tokens(
    access: Access, _: describe_delegation_token.DescribeDelegationTokenRequest
) -> Verdict:
    """Hide tokens of others: DESCRIBE of the token, or DESCRIBE_TOKENS of its owner."""

    def complete(
        response: describe_delegation_token.DescribeDelegationTokenResponse,
    ) -> describe_delegation_token.DescribeDelegationTokenResponse:
        response.tokens = [token for token in response.tokens if _may_see(access, token)]
        return response

    return complete


def _may_see(access: Access, token: describe_delegation_token.DescribedDelegationToken) -> bool:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    renewers = {f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers}
    return (
        access.requester.principal in {owner, requester, *renewers}
        or access.shows(ResourceType.DELEGATION_TOKEN, token.token_id)
        or access.shows(ResourceType.USER, owner, AclOperation.DESCRIBE_TOKENS)
    )

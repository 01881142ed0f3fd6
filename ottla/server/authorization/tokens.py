"""The checks of APIs of delegation tokens (KIP-48, KIP-373).

Owners and renewers need no permission, and the handlers check who may renew and expire a token.
"""

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclOperation, ResourceType
from ottla.security.principal import Principal
from ottla.server.authentication.identity import may_request_tokens
from ottla.server.authorization.access import Access
from ottla.server.authorization.guarding import Verdict
from ottla.wire.messages import create_delegation_token, describe_delegation_token


def check_create_token(
    access: Access, request: create_delegation_token.CreateDelegationTokenRequest
) -> Verdict:
    """CREATE_TOKENS of the owner if that is another principal."""
    kind, name = request.owner_principal_type, request.owner_principal_name
    if not name or kind is None or not may_request_tokens(access.connection):
        # The requester is the owner, or the handler refuses the request.
        return None
    requester, owner = access.requester.principal, Principal(kind, name)
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if not owner.is_user:
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    elif owner == requester or access.may(
        AclOperation.CREATE_TOKENS, ResourceType.USER, owner.text()
    ):
        return None
    return create_delegation_token.CreateDelegationTokenResponse(
        error_code=int(code),
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
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
    owner = Principal(token.principal_type, token.principal_name)
    concerned = {
        owner,
        Principal(token.token_requester_principal_type, token.token_requester_principal_name),
        *(Principal(row.principal_type, row.principal_name) for row in token.renewers),
    }
    return (
        access.requester.principal in concerned
        or access.shows(ResourceType.DELEGATION_TOKEN, token.token_id)
        or (
            owner.is_user
            and access.shows(ResourceType.USER, owner.text(), AclOperation.DESCRIBE_TOKENS)
        )
    )

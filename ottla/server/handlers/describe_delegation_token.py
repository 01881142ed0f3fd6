"""DescribeDelegationToken (key 41), versions 1-3: the tokens of some principals, or all (KIP-48).

v2: flexible. v3: the requester of each token (KIP-373). A token belongs to its owner, its requester
and its renewers. As in Kafka, a client that has not authenticated, or with a token, is refused with
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without a secret key the error is
DELEGATION_TOKEN_AUTH_DISABLED.

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.principal import Principal
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from ottla.server.authentication.tokens import IssuedToken

API = ApiKey.DESCRIBE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 3

_FIRST_WITH_REQUESTER = 3


def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Return the tokens of the principals; all tokens if there is no list, none if it is empty."""
    try:
        tokens = context.broker.logins.tokens_for(context.connection)
    except ApiError as error:
        return _refusal(error.code)
    principals = None
    if request.owners is not None:
        principals = [Principal(row.principal_type, row.principal_name) for row in request.owners]
    has_requester = context.api_version >= _FIRST_WITH_REQUESTER
    return DescribeDelegationTokenResponse(
        tokens=[_row(issued, has_requester) for issued in tokens.describe(principals)]
    )


def _refusal(error: ErrorCode) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=int(error))


def _row(issued: "IssuedToken", has_requester: bool) -> DescribedDelegationToken:
    token = issued.token
    row = DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=issued.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in token.renewers
        ],
    )
    if has_requester:
        row.token_requester_principal_type = token.requester.kind
        row.token_requester_principal_name = token.requester.name
    return row

"""CreateDelegationToken (key 38), versions 1-3: issue a token that logs in as its owner (KIP-48).

v2: flexible. v3: the owner of the token, by default the requester (KIP-373). As in Kafka, a
listener without SASL and TLS refuses the request with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Not done: tokens are not issued, because no listener has SASL. A secured broker issues them if
delegation.token.secret.key is set; otherwise the error is DELEGATION_TOKEN_AUTH_DISABLED.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.server.quotas.entities import ANONYMOUS
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

API = ApiKey.CREATE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 3

_FIRST_WITH_REQUESTER = 3
_USER = "User"
_NO_TIME = -1


def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse the request; the response repeats owner and requester."""
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    owner = (_USER, ANONYMOUS)
    if request.owner_principal_name and request.owner_principal_type is None:
        # Kafka's broker cannot construct this principal.
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    elif request.owner_principal_name:
        owner = (request.owner_principal_type or "", request.owner_principal_name)
    requester = (_USER, ANONYMOUS) if context.api_version >= _FIRST_WITH_REQUESTER else ("", "")
    return CreateDelegationTokenResponse(
        error_code=int(error),
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )

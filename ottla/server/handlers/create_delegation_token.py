"""CreateDelegationToken (key 38), versions 1-3: issue a token that logs in as its owner (KIP-48).

v2: flexible. v3: the owner of the token, by default the requester (KIP-373). As in Kafka, only a
client that has authenticated, and not with a token, is issued one: otherwise the error is
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without a secret key it is DELEGATION_TOKEN_AUTH_DISABLED.
Owner and renewers are users: another type is INVALID_PRINCIPAL_TYPE, which Kafka's broker does not
check for owners.

Not done: nothing.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.principal import Principal, check_users
from ottla.server.api_properties import ApiProperties
from ottla.server.authentication.identity import may_request_tokens, principal_of
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

API = ApiKey.CREATE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_administrative=True)

_FIRST_WITH_REQUESTER = 3
_NO_TIME = -1


async def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Issue a token; a response with an error repeats owner and requester."""
    requester = owner = principal_of(context.connection)
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=_NO_TIME, expiry_timestamp_ms=_NO_TIME, max_timestamp_ms=_NO_TIME
    )
    try:
        if request.owner_principal_name:
            owner = _owner(request.owner_principal_type, request.owner_principal_name)
        await _create(context, owner, request, response)
    except ApiError as error:
        response.error_code = int(error.code)
    response.principal_type, response.principal_name = owner
    if context.api_version >= _FIRST_WITH_REQUESTER:
        response.token_requester_principal_type = requester.kind
        response.token_requester_principal_name = requester.name
    return response


def _owner(kind: str | None, name: str) -> Principal:
    if kind is None:
        # Kafka's broker cannot construct this principal.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Principal(kind, name)


async def _create(
    context: RequestContext,
    owner: Principal,
    request: CreateDelegationTokenRequest,
    response: CreateDelegationTokenResponse,
) -> None:
    """Issue the token and put it into the response; raises ApiError if it is refused."""
    connection, tokens = context.connection, context.broker.logins.tokens
    if not may_request_tokens(connection):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    renewers = [Principal(row.principal_type, row.principal_name) for row in request.renewers]
    check_users([owner, *renewers])
    if tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    requester = principal_of(connection)
    token, hmac = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    response.issue_timestamp_ms = token.issue_ms
    response.expiry_timestamp_ms = token.expiry_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id, response.hmac = token.token_id, hmac

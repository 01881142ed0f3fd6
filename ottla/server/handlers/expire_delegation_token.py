"""ExpireDelegationToken (key 40), versions 1-2: change when a token expires, or delete it (KIP-48).

v2: flexible. The owner and the renewers of a token may do that; for others the error is
DELEGATION_TOKEN_OWNER_MISMATCH. As in Kafka, a client that has not authenticated, or with a token,
is refused with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, whether or not the token exists. Without a
secret key the error is DELEGATION_TOKEN_AUTH_DISABLED.

Not done: nothing.
"""

from ottla.base.errors import ApiError
from ottla.server.api_properties import ApiProperties
from ottla.server.authentication.identity import principal_of
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

API = ApiKey.EXPIRE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)

_NO_TIME = -1


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Change the time; the response has it."""
    try:
        expiry_ms = await _expire(context, request)
    except ApiError as error:
        return ExpireDelegationTokenResponse(
            error_code=int(error.code), expiry_timestamp_ms=_NO_TIME
        )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


async def _expire(context: RequestContext, request: ExpireDelegationTokenRequest) -> int:
    tokens = context.broker.logins.tokens_for(context.connection)
    principal = principal_of(context.connection)
    return await tokens.expire(principal, bytes(request.hmac), request.expiry_time_period_ms)

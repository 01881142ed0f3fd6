"""ExpireDelegationToken (key 40), versions 1-2: change when a token expires, or delete it (KIP-48).

v2: flexible. The owner and the renewers of a token may do that; for others the error is
DELEGATION_TOKEN_OWNER_MISMATCH. As in Kafka, a client that has not authenticated, or with a token,
is refused with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, whether or not the token exists. Without a
secret key the error is DELEGATION_TOKEN_AUTH_DISABLED.

Not done: nothing.
"""

from ottla.server.api_properties import ApiProperties
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


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Change the time; the response has it."""
    code, expiry_ms = await context.broker.logins.change_expiry(
        context.connection,
        lambda tokens, principal: tokens.expire(
            principal, bytes(request.hmac), request.expiry_time_period_ms
        ),
    )
    return ExpireDelegationTokenResponse(error_code=int(code), expiry_timestamp_ms=expiry_ms)

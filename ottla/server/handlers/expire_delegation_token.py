"""ExpireDelegationToken (key 40), versions 1-2: change when a token expires, or delete it (KIP-48).

v2: flexible. As in Kafka, a listener without SASL and TLS refuses the request with
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, whether or not the token exists.

Not done: tokens are not expired, because no listener has SASL. A secured broker expires the tokens
that the user owns or may renew. Without a secret key the error is DELEGATION_TOKEN_AUTH_DISABLED.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

API = ApiKey.EXPIRE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 2

_NO_TIME = -1


def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Refuse the request."""
    return ExpireDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        expiry_timestamp_ms=_NO_TIME,
    )

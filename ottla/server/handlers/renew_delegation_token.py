"""RenewDelegationToken (key 39), versions 1-2: postpone the expiry of a token (KIP-48).

v2: flexible. As in Kafka, a listener without SASL and TLS refuses the request with
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, whether or not the token exists.

Not done: tokens are not renewed, because no listener has SASL. A secured broker renews the tokens
that the user owns or may renew. Without a secret key the error is DELEGATION_TOKEN_AUTH_DISABLED.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

API = ApiKey.RENEW_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 2

_NO_TIME = -1


def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Refuse the request."""
    return RenewDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        expiry_timestamp_ms=_NO_TIME,
    )

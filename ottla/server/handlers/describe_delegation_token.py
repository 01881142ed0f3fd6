"""DescribeDelegationToken (key 41), versions 1-3: the tokens of some principals, or all (KIP-48).

v2: flexible. v3: the requester of each token (KIP-373). As in Kafka, a listener without SASL and
TLS refuses the request with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Not done: tokens are not described, because no listener has SASL. A secured broker lists the tokens
that the user owns, may renew or may describe. Without a secret key the error is
DELEGATION_TOKEN_AUTH_DISABLED.
"""

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

API = ApiKey.DESCRIBE_DELEGATION_TOKEN
MIN_VERSION = 1
MAX_VERSION = 3


def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse the request."""
    return DescribeDelegationTokenResponse(
        error_code=int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    )

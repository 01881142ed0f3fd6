"""SaslAuthenticate (key 36), versions 0-2: one step of the exchange that SaslHandshake began.

v1: session lifetime, always 0 (unlimited). v2: flexible. A proof that is wrong is refused with
SASL_AUTHENTICATION_FAILED, a request outside of an exchange with ILLEGAL_SASL_STATE.

Not done: the mechanisms of clients; no listener has SASL.
"""

import logging

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import ProofError, ProofToPeer
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

API = ApiKey.SASL_AUTHENTICATE
MIN_VERSION = 0
MAX_VERSION = 2

_log = logging.getLogger(__name__)


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Answer a message of the exchange; after a failure the exchange has to begin again."""
    exchange = context.connection.identity
    if not isinstance(exchange, ProofToPeer):
        return SaslAuthenticateResponse(
            error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
            error_message="SaslAuthenticate without a SaslHandshake before it.",
        )
    try:
        reply = exchange.step(bytes(request.auth_bytes))
    except ProofError as error:
        context.connection.identity = None
        _log.warning(
            "broker not accepted peer=%s reason=%s", context.connection.peer_address, error
        )
        return SaslAuthenticateResponse(
            error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED),
            error_message="The proof of identity is wrong.",
        )
    return SaslAuthenticateResponse(auth_bytes=reply)

"""SaslAuthenticate (key 36), versions 0-2: one step of the exchange that SaslHandshake began.

v1: lifetime of the session (KIP-368), 0 if it is unlimited. v2: flexible. A message that is wrong
is refused with SASL_AUTHENTICATION_FAILED, a request outside of an exchange with
ILLEGAL_SASL_STATE. As in Kafka, a client that has failed is answered after
connection.failed.authentication.delay.ms and disconnected.

Not done: nothing.
"""

import asyncio
import logging

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import ProofError, ProofToPeer
from ottla.security.exchanges import AuthenticationFailed
from ottla.server.authentication.identity import ClientLogin
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
_Later = asyncio.Future[SaslAuthenticateResponse]


def handle(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | _Later:
    """Answer a message of the exchange; after a failure the exchange has to begin again."""
    exchange = context.connection.identity
    message = bytes(request.auth_bytes)
    if isinstance(exchange, ClientLogin) and exchange.session is None:
        try:
            reply = exchange.step(message)
        except AuthenticationFailed as error:
            return _refuse(context, str(error))
        lifetime_ms = 0 if exchange.session is None else exchange.session.lifetime_ms
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=reply, session_lifetime_ms=lifetime_ms
        )
    if not isinstance(exchange, ProofToPeer):
        return SaslAuthenticateResponse(
            error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
            error_message="SaslAuthenticate without a SaslHandshake before it.",
        )
    try:
        reply = exchange.step(message)
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


def _refuse(context: RequestContext, reason: str) -> _Later:
    """Respond later, so that passwords cannot be tried quickly, and disconnect then."""
    connection = context.connection
    _log.warning("client not authenticated peer=%s reason=%s", connection.peer_address, reason)
    loop = asyncio.get_running_loop()
    later: _Later = loop.create_future()

    def respond() -> None:
        if later.done():
            return
        later.set_result(
            SaslAuthenticateResponse(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=reason
            )
        )
        # After the response, which the future's callback sends.
        loop.call_soon(loop.call_soon, connection.close, "the client is not authenticated")

    delay_ms = context.broker.options.integer("connection.failed.authentication.delay.ms")
    loop.call_later(delay_ms / 1000, respond)
    return later

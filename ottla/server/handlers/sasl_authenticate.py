"""SaslAuthenticate (key 36), versions 0-2: one step of the exchange that SaslHandshake began.

v1: lifetime of the session (KIP-368), 0 if it is unlimited. v2: flexible. A message that is wrong
is refused with SASL_AUTHENTICATION_FAILED, a request outside of an exchange with
ILLEGAL_SASL_STATE. As in Kafka, a client that has failed gets its response after
connection.failed.authentication.delay.ms and is disconnected.

Not done: nothing.
"""

import asyncio
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.base.loading import deferred_module
from ottla.security.broker_proof import MECHANISM, ProofError, ProofToPeer
from ottla.security.exchanges import AuthenticationFailed
from ottla.server.authentication.identity import ClientLogin, FailedLogin
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

if TYPE_CHECKING:
    from ottla.server.authentication import refusals
else:
    # Only failed logins need it.
    refusals = deferred_module("ottla.server.authentication.refusals")

API = ApiKey.SASL_AUTHENTICATE
MIN_VERSION = 0
MAX_VERSION = 2


def handle(
    context: RequestContext, request: SaslAuthenticateRequest
) -> "SaslAuthenticateResponse | asyncio.Future[SaslAuthenticateResponse]":
    """Respond to a message of the exchange; after a failure the client is disconnected."""
    exchange = context.connection.identity
    message = bytes(request.auth_bytes)
    if isinstance(exchange, ClientLogin) and exchange.session is None:
        try:
            reply = exchange.step(message)
        except (AuthenticationFailed, ProtocolError) as error:
            if not exchange.is_reported:
                context.broker.audit.login_failed(
                    context.connection, context.client_id, exchange.failure(error)
                )
            if isinstance(error, ProtocolError):
                raise
            refusal = SaslAuthenticateResponse(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=str(error)
            )
            return refusals.answer_late(
                context.connection,
                refusal,
                str(error),
                context.broker.options.integer(refusals.DELAY),
            )
        if exchange.unreported is not None:
            failed, exchange.unreported = exchange.unreported, None
            context.broker.audit.login_failed(context.connection, context.client_id, failed)
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
        failed = FailedLogin(MECHANISM, "", str(error))
        context.broker.audit.login_failed(context.connection, context.client_id, failed)
        context.connection.identity = exchange.former
        refusal = SaslAuthenticateResponse(
            error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED),
            error_message="The proof of identity is wrong.",
        )
        delay_ms = context.broker.options.integer(refusals.DELAY)
        return refusals.answer_late(
            context.connection, refusal, f"broker not accepted: {error}", delay_ms
        )
    return SaslAuthenticateResponse(auth_bytes=reply)

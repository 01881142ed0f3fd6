"""SaslHandshake (key 17), versions 0-1: choose how a peer proves its identity.

v0: the messages of the exchange follow as they are; v1: in SaslAuthenticate requests (KIP-152).
Brokers of one cluster use the mechanism OTTLA-BROKER on the listener for brokers only
(ottla.security.broker_proof). As in Kafka, another mechanism on a listener without SASL is refused
with ILLEGAL_SASL_STATE. One that the listener does not have is UNSUPPORTED_SASL_MECHANISM, with
those that it has: this response comes after connection.failed.authentication.delay.ms, and the
connection is closed.

A client whose session ends begins another exchange on its connection (KIP-368), at most once in a
second. ILLEGAL_SASL_STATE for one whose session does not end. If it chooses a mechanism that the
listener does not have, it is disconnected without a response, as by Kafka.

Not done: nothing.
"""

import asyncio
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.base.loading import deferred_module
from ottla.security.broker_proof import MECHANISM, NUMBER_BYTES, ProofToPeer
from ottla.security.sessions import Renewal
from ottla.server.authentication.identity import FailedLogin, certificate_user, session_of
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.server.authentication import refusals
else:
    # Only failed logins need it.
    refusals = deferred_module("ottla.server.authentication.refusals")

API = ApiKey.SASL_HANDSHAKE
MIN_VERSION = 0
MAX_VERSION = 1


def handle(
    context: RequestContext, request: SaslHandshakeRequest
) -> "SaslHandshakeResponse | asyncio.Future[SaslHandshakeResponse]":
    """Begin the exchange; SaslAuthenticate requests continue it."""
    secret, connection = context.broker.secret, context.connection
    session = session_of(connection)
    logins, listener = context.broker.logins, connection.listener_name
    is_for_brokers = secret is not None and listener in context.broker.broker_listeners
    if request.mechanism == MECHANISM and is_for_brokers and session is None:
        assert secret is not None
        number = context.broker.rng.random_bytes(NUMBER_BYTES)
        former, binding = certificate_user(connection), connection.channel_binding
        connection.identity = ProofToPeer(secret.valid_keys(), number, former, binding)
        return SaslHandshakeResponse(mechanisms=[MECHANISM])
    mechanisms, now = logins.mechanisms(listener), context.broker.clock.monotonic()
    if not mechanisms or (session is not None and not session.may_be_renewed(now)):
        return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
    if request.mechanism not in mechanisms:
        if session is not None:
            raise ProtocolError(f"unsupported SASL mechanism {request.mechanism!r}")
        refusal = SaslHandshakeResponse(
            error_code=int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), mechanisms=list(mechanisms)
        )
        logins.refuse(listener)
        reason = f"unsupported SASL mechanism {request.mechanism!r}"
        failed = FailedLogin(request.mechanism, "", reason)
        context.broker.audit.login_failed(connection, context.client_id, failed)
        return refusals.answer_late(
            context.connection,
            refusal,
            reason,
            context.broker.options.integer(refusals.DELAY),
        )
    connection.identity = logins.begin(
        listener,
        request.mechanism,
        is_raw=context.api_version == 0,
        renewal=None if session is None else Renewal(session, now),
    )
    return SaslHandshakeResponse(mechanisms=list(mechanisms))

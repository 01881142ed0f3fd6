"""SaslHandshake (key 17), versions 0-1: choose how a peer proves its identity.

Brokers of one cluster use the mechanism OTTLA-BROKER on any listener (ottla.security.broker_proof).
As in Kafka, another mechanism on a listener without SASL is refused with ILLEGAL_SASL_STATE.

Not done: the mechanisms of clients; no listener has SASL.
"""

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import MECHANISM, NUMBER_BYTES, ProofToPeer
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API = ApiKey.SASL_HANDSHAKE
MIN_VERSION = 0
MAX_VERSION = 1


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Begin the exchange; SaslAuthenticate requests continue it."""
    secret = context.broker.secret
    if request.mechanism != MECHANISM or secret is None:
        return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
    number = context.broker.rng.random_bytes(NUMBER_BYTES)
    context.connection.identity = ProofToPeer(secret, number)
    return SaslHandshakeResponse(mechanisms=[MECHANISM])

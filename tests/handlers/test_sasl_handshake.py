"""SaslHandshake: the mechanism of brokers is accepted, those of clients are not."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import MECHANISM, ProofToPeer
from ottla.server.handlers import sasl_handshake
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.handlers.logs import LogsBroker

VERSIONS = range(sasl_handshake.MIN_VERSION, sasl_handshake.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_mechanism_of_brokers_begins_an_exchange(
    broker: LogsBroker, version: int
) -> None:
    """The connection has no identity before the exchange is complete."""
    context = broker.context(sasl_handshake, version)
    response = sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=MECHANISM))
    assert (response.error_code, response.mechanisms) == (0, [MECHANISM])
    assert isinstance(context.connection.identity, ProofToPeer)
    assert not context.is_from_broker(-1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", ""])
async def test_a_mechanism_of_clients_is_refused(
    broker: LogsBroker, version: int, mechanism: str
) -> None:
    """As Apache Kafka answers on a listener without SASL."""
    response = await broker.ask(sasl_handshake, SaslHandshakeRequest(mechanism=mechanism), version)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.mechanisms == []

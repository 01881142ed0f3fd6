"""SaslHandshake: the mechanism of brokers on their listener, the mechanisms of clients on listeners
with SASL.
"""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.broker_proof import MECHANISM, ProofToPeer
from ottla.server.authentication.identity import is_known, user_of
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


async def test_the_mechanism_of_brokers_is_refused_on_other_listeners(broker: LogsBroker) -> None:
    """There clients could try keys, and a key that is known would give full rights."""
    broker.broker_listeners = frozenset({"INNER"})
    request = SaslHandshakeRequest(mechanism=MECHANISM)
    response = await broker.ask(sasl_handshake, request, 1)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    context = broker.context(sasl_handshake, 1, listener="SASL")
    context.connection.close = lambda reason: None
    refused = await sasl_handshake.handle(context, request)
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert refused.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    inner = broker.context(sasl_handshake, 1, listener="INNER")
    assert sasl_handshake.handle(inner, request).error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", ""])
async def test_a_mechanism_of_clients_is_refused(
    broker: LogsBroker, version: int, mechanism: str
) -> None:
    """Apache Kafka returns the same response on a listener without SASL."""
    response = await broker.ask(sasl_handshake, SaslHandshakeRequest(mechanism=mechanism), version)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.mechanisms == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_mechanism_of_the_listener_begins_an_exchange(
    broker: LogsBroker, version: int, mechanism: str
) -> None:
    """In version 0 its messages come without a header."""
    context = broker.context(sasl_handshake, version, listener="SASL")
    response = sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=mechanism))
    assert (response.error_code, response.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    assert context.connection.identity.is_raw is (version == 0)
    assert not is_known(context.connection)
    assert user_of(context.connection) == "ANONYMOUS"


async def test_mechanism_that_the_listener_lacks_is_refused(broker: LogsBroker) -> None:
    """The response has those that it has; it comes late, and then the connection is closed."""
    closed: list[str] = []
    context = broker.context(sasl_handshake, 1, listener="SASL")
    context.connection.close = closed.append
    later = sasl_handshake.handle(context, SaslHandshakeRequest(mechanism="GSSAPI"))
    assert asyncio.isfuture(later)
    response = await later
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert closed == ["the client is not authenticated"]


@pytest.mark.parametrize("mechanism", ["PLAIN", MECHANISM])
async def test_authenticated_client_begins_no_other_exchange(
    broker: LogsBroker, mechanism: str
) -> None:
    """It stays the user that it is, also for its quotas."""
    context = broker.context(sasl_handshake, 1, listener="SASL")
    sasl_handshake.handle(context, SaslHandshakeRequest(mechanism="PLAIN"))
    context.connection.identity.step(b"\0ann\0secret")
    response = sasl_handshake.handle(context, SaslHandshakeRequest(mechanism=mechanism))
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert user_of(context.connection) == "ann"

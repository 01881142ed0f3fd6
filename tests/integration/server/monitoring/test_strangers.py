"""The metrics of strangers: connections that are not known yet, and what their bounds have done."""

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.wire import headers
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.integration.server.monitoring.test_metrics import SETTINGS, metrics
from tests.integration.server.test_node import Yard

PLAIN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
    ),
    "connection.failed.authentication.delay.ms": "1",
    "connection.failed.authentication.delay.max.ms": "4",
    "connection.failed.authentication.free.count": "1",
}


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own."""
    async with Yard(tmp_path / "data") as created:
        yield created


async def test_strangers_are_reported(yard: Yard) -> None:
    """Connections that are not known yet are reported, and those that the bounds have closed."""
    settings = {"max.unauthenticated.connections.per.ip": "1"}
    node = await yard.start(settings=SETTINGS | settings)
    known = await yard.client(node)
    await known.metadata()
    _reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    refused, other = await asyncio.open_connection("127.0.0.1", node.port)
    assert await refused.read() == b""
    value = await metrics(node)
    assert value("ottla_unauthenticated_connections") == 1
    assert value("ottla_unauthenticated_connections_refused_total") == 1
    assert value("ottla_unauthenticated_connections_displaced_total") == 0
    assert value("ottla_authentications_timed_out_total") == 0
    for peer in (writer, other):
        peer.close()


async def test_slow_logins_are_reported(yard: Yard) -> None:
    """Passwords that were checked late, and logins that were not checked at all."""
    node = await yard.start(settings=SETTINGS | PLAIN)
    guesses = [_guess(node.port) for _ in range(20)]
    await asyncio.gather(*guesses)
    value = await metrics(node)
    listener = {"listener": "SASL_PLAINTEXT"}
    name = "kafka_server_socket_server_metrics_failed_authentication_total"
    assert value(name, **listener, networkProcessor=0) == 20
    assert value("ottla_logins_delayed_total", **listener) > 0
    assert value("ottla_logins_refused_total", **listener) > 0


async def _guess(port: int) -> None:
    """Try a wrong password until the broker disconnects."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in (
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=b"\0ann\0wrong"),
    ):
        body = headers.encode_request(request, 1, 1, "test")
        writer.write(struct.pack(">i", len(body)) + body)
    assert await reader.read()
    writer.close()

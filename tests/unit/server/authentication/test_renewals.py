"""A connection whose session ends: the gate, the handlers and the exchange on virtual time."""

import asyncio
import inspect
import struct
from typing import Any, cast

import pytest

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.connection import Connection
from ottla.server.authentication.gate import AuthenticationLimits, Gate
from ottla.server.authentication.identity import Latency, LoginCounts, is_known, session_of, user_of
from ottla.server.authentication.logins import Logins
from ottla.server.handlers import sasl_authenticate, sasl_handshake
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.handlers.logs import LogsBroker, scram_users

METADATA, HANDSHAKE, AUTHENTICATE = 3, 17, 36
SECURITY = ListenerSecurity(
    ("PLAIN", "SCRAM-SHA-256"), {"ann": "secret", "bob": "other"}, None, {"PLAIN": 5000}
)


class Client:
    """A connection at the gate of a listener; `served` has the keys that reach the dispatcher."""

    def __init__(self, broker: LogsBroker) -> None:
        self.clock = broker.clock
        self.counts = LoginCounts()
        broker.logins = Logins(
            {"SASL": SECURITY},
            scram_users({}),
            SeededRng(1),
            self.clock,
            counts={"SASL": self.counts},
        )
        self.context = broker.context(sasl_handshake, 1, listener="SASL")
        self.connection = self.context.connection
        self.connection.pass_to = lambda handler, _: setattr(self, "handler", handler)
        limits = AuthenticationLimits(1000, 1000, 0.0)
        self.gate = Gate(self, SECURITY, limits, self.clock.monotonic, self.counts, lambda *_: None)
        self.handler: Any = self.gate
        self.served: list[int] = []
        self.request: Any = None
        self.response: Any = None

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Take the part of the dispatcher."""
        self.served.append(int.from_bytes(frame[:2], "big"))
        handlers = {HANDSHAKE: sasl_handshake, AUTHENTICATE: sasl_authenticate}
        if self.request is not None:
            self.response = handlers[self.served[-1]].handle(self.context, self.request)

    def send(self, key: int, request: Any = None) -> Any:
        self.request, self.response = request, None
        frame = memoryview(bytearray(struct.pack(">hhi", key, 1, 1)))
        self.handler.frame(cast(Connection, self.connection), frame)
        return self.response

    def handshake(self, mechanism: str = "PLAIN") -> int:
        response = self.send(HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
        return int(response.error_code)

    def authenticate(self, user: str = "ann", password: str = "secret") -> Any:
        message = f"\0{user}\0{password}".encode()
        return self.send(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message))


@pytest.fixture
def client(broker: LogsBroker) -> Client:
    """Return a client that has logged in with PLAIN."""
    client = Client(broker)
    assert client.handshake() == 0
    assert client.authenticate().session_lifetime_ms == 5000
    return client


async def test_request_after_the_end_closes_the_connection(client: Client) -> None:
    """Before the end every request is served."""
    client.send(METADATA)
    client.clock.now += 5.0
    client.send(METADATA)
    assert client.served[-2:] == [METADATA, METADATA]
    client.clock.now += 0.001
    with pytest.raises(ProtocolError, match="the session of user ann has ended"):
        client.send(METADATA)
    assert client.served.count(METADATA) == 2


@pytest.mark.parametrize("seconds", [0.0, 4.0, 60.0])
async def test_client_authenticates_again_on_its_connection(client: Client, seconds: float) -> None:
    """Also after the end of its session; the new one has its whole lifetime."""
    client.clock.now += seconds
    assert client.handshake() == 0
    assert not is_known(client.connection)
    assert user_of(client.connection) == "ann"
    assert client.authenticate().session_lifetime_ms == 5000
    client.clock.now += 4.9
    client.send(METADATA)
    assert client.served[-1] == METADATA


async def test_only_the_exchange_is_served_while_a_session_is_renewed(client: Client) -> None:
    """A second handshake would lose the former session."""
    client.handshake()
    for key in (METADATA, HANDSHAKE, 18):
        with pytest.raises(ProtocolError, match=f"key {key} before authentication"):
            client.send(key)


async def test_second_renewal_within_a_second_is_refused(client: Client) -> None:
    """The error is the same as for a session that does not end, as in Kafka; the session continues."""
    client.handshake()
    client.authenticate()
    client.clock.now += 0.9
    assert client.handshake() == ErrorCode.ILLEGAL_SASL_STATE
    client.send(METADATA)
    client.clock.now += 0.1
    assert client.handshake() == 0


async def test_session_of_another_user_is_refused(client: Client) -> None:
    """The response comes late, and the connection is closed after it."""
    closed: list[str] = []
    client.connection.close = closed.append
    client.handshake()
    later = client.authenticate("bob", "other")
    assert inspect.isawaitable(later)
    response = await cast("asyncio.Future[Any]", later)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (
        "Cannot change principals during re-authentication from User.ann: User.bob"
    )
    assert session_of(client.connection) is None


async def test_unsupported_mechanism_ends_the_session(client: Client) -> None:
    """The connection is closed without a response, as by Kafka 4.3."""
    with pytest.raises(ProtocolError, match="unsupported SASL mechanism 'GSSAPI'"):
        client.handshake("GSSAPI")


async def test_another_mechanism_closes_the_connection(client: Client) -> None:
    """The handshake is accepted, as in Kafka, and the message after it gets no response."""
    assert client.handshake("SCRAM-SHA-256") == 0
    with pytest.raises(ProtocolError, match="not supported for re-authentication"):
        client.authenticate()


async def test_client_without_a_limit_leaves_the_gate(broker: LogsBroker) -> None:
    """Its requests are not checked; an exchange after that is refused."""
    client = Client(broker)
    broker.logins = Logins(
        {"SASL": SECURITY._replace(session_ms={})}, scram_users({}), SeededRng(1), client.clock
    )
    client.handshake()
    assert client.authenticate().session_lifetime_ms == 0
    assert client.handler is client
    assert client.handshake() == ErrorCode.ILLEGAL_SASL_STATE


async def test_logins_and_renewals_are_counted(client: Client) -> None:
    """Failed ones, connections whose session has ended, and the time that a renewal takes, too."""
    counts = client.counts
    client.handshake()
    client.clock.now += 0.25
    client.authenticate()
    assert (counts.succeeded, counts.renewed, counts.failed_renewals) == (1, 1, 0)
    assert counts.latency_ms.recent(client.clock.now) == (250.0, 250.0)
    client.clock.now += 2.0
    client.handshake("SCRAM-SHA-256")
    with pytest.raises(ProtocolError):
        client.authenticate()
    assert (counts.renewed, counts.failed_renewals, counts.failed) == (1, 1, 0)


async def test_failed_logins_and_ended_sessions_are_counted(client: Client) -> None:
    """An exchange that has failed counts once."""
    client.clock.now += 6.0
    with pytest.raises(ProtocolError):
        client.send(METADATA)
    assert client.counts.expired == 1
    client.connection.identity = None
    client.connection.close = lambda _: None
    client.handshake()
    for _ in range(2):
        await client.authenticate(password="wrong")
    client.connection.identity = None
    client.send(HANDSHAKE, SaslHandshakeRequest(mechanism="GSSAPI"))
    assert (client.counts.succeeded, client.counts.failed) == (1, 2)


def test_latency_is_of_the_last_minute() -> None:
    """Two windows of half a minute count, as in Kafka."""
    latency = Latency()
    assert str(latency.recent(100.0)) == "(nan, nan)"
    latency.record(1.0, 101.0)
    latency.record(3.0, 129.0)
    assert latency.recent(129.9) == (2.0, 3.0)
    latency.record(5.0, 131.0)
    assert latency.recent(132.0) == (3.0, 5.0)
    assert latency.recent(162.0) == (5.0, 5.0)
    assert str(latency.recent(300.0)) == "(nan, nan)"

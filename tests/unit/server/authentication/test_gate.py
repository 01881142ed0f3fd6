"""The gate of connections whose client is not known yet."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography.x509 import Name, NameAttribute
from cryptography.x509.oid import NameOID

from ottla.base.clock import RealClock
from ottla.base.errors import ProtocolError
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.connection import Connection
from ottla.security.broker_proof import ProofToPeer
from ottla.security.exchanges import AuthenticationFailed
from ottla.security.principal_rules import parse_rules
from ottla.server.authentication.gate import AuthenticationLimits, Gate
from ottla.server.authentication.identity import CertificateUser, LoginCounts, is_known, user_of
from ottla.server.authentication.logins import Logins
from tests.certificates import of_subject
from tests.handlers.logs import scram_users

SASL = ListenerSecurity(("PLAIN", "SCRAM-SHA-256"), {"ann": "secret"})
METADATA, HANDSHAKE = b"\0\3\0\1", b"\0\x11\0\1"


def certificate(**attributes: str) -> bytes:
    """Return a certificate whose subject has these attributes."""
    kinds = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}
    return of_subject(Name([NameAttribute(kinds[name], text) for name, text in attributes.items()]))


class Line:
    """A connection that notes to which handler it was passed."""

    def __init__(self, identity: Any = None, certificate: object = None) -> None:
        self.identity = identity
        self.certificate = certificate
        self.passed: list[int] = []
        self.sent: list[bytes] = []

    def pass_to(self, handler: object, frame_bytes_max: int) -> None:
        self.passed.append(frame_bytes_max)

    def send(self, parts: tuple[bytes, ...]) -> None:
        self.sent += parts


class Frames:
    """A dispatcher that notes its frames."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def frame(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))


def pass_frame(line: Line, frame: bytes, security: ListenerSecurity = SASL) -> list[bytes]:
    """Send a frame through the gate; return those that the dispatcher has received."""
    dispatcher = Frames()
    limits = AuthenticationLimits(100, 1000, 0.0)
    gate = Gate(dispatcher, security, limits, lambda: 0.0, LoginCounts(), lambda *_: None)
    gate.frame(cast(Connection, line), memoryview(bytearray(frame)))
    return dispatcher.frames


def login(mechanism: str = "PLAIN", *, is_raw: bool = False) -> Any:
    """Return a new exchange."""
    logins = Logins({"SASL": SASL}, scram_users({}), SeededRng(1), RealClock())
    return logins.begin("SASL", mechanism, is_raw=is_raw)


def test_only_requests_of_the_exchange_pass() -> None:
    """The connection stays at the gate."""
    line = Line()
    assert pass_frame(line, HANDSHAKE) == [HANDSHAKE]
    with pytest.raises(ProtocolError, match="key 3 before authentication"):
        pass_frame(line, METADATA)
    with pytest.raises(ProtocolError, match="101 bytes before authentication"):
        pass_frame(line, HANDSHAKE + bytes(97))
    assert line.passed == []


def test_authenticated_client_leaves_the_gate() -> None:
    """Also one whose next request came in the same read."""
    line = Line(login())
    line.identity.step(b"\0ann\0secret")
    assert pass_frame(line, METADATA) == [METADATA]
    assert user_of(cast(Connection, line)) == "ann"


def test_message_without_a_header_is_a_step() -> None:
    """After version 0 of the handshake."""
    line = Line(login(is_raw=True))
    assert pass_frame(line, b"\0ann\0secret") == []
    assert (line.sent, line.passed) == ([b""], [1000])


def test_failed_exchange_cannot_be_continued() -> None:
    """A second message with the right password comes too late."""
    exchange = login()
    for message in (b"\0ann\0wrong", b"\0ann\0secret"):
        with pytest.raises(AuthenticationFailed):
            exchange.step(message)
    assert not is_known(cast(Connection, Line(exchange)))


@pytest.mark.parametrize(
    ("shown", "user"),
    [
        (certificate(CN="ann"), "CN=ann"),
        (certificate(), "ANONYMOUS"),
        (None, "ANONYMOUS"),
    ],
)
def test_user_of_a_certificate_is_its_subject(shown: bytes | None, user: str) -> None:
    """A listener with TLS and without SASL passes every request."""
    line = Line(certificate=shown)
    assert pass_frame(line, METADATA, ListenerSecurity()) == [METADATA]
    assert user_of(cast(Connection, line)) == user
    assert line.passed == [1000]


def test_rules_return_the_user_of_a_certificate() -> None:
    """A client whose certificate no rule matches is disconnected, as in Kafka."""
    security = ListenerSecurity(names=parse_rules("RULE:^CN=(a.*?),O=.*$/$1/U"))
    line = Line(certificate=certificate(O="x", CN="ann"))
    assert pass_frame(line, METADATA, security) == [METADATA]
    assert user_of(cast(Connection, line)) == "ANN"
    stranger = Line(certificate=certificate(CN="ben"))
    with pytest.raises(ProtocolError, match=r"ssl\.principal\.mapping\.rules .* 'CN=ben'"):
        pass_frame(stranger, METADATA, security)
    without = Line()
    pass_frame(without, METADATA, security)
    assert user_of(cast(Connection, without)) == "ANONYMOUS"


def test_broker_is_known_after_its_proof() -> None:
    """It introduces itself on any listener, and has the quotas of no user."""
    proof = ProofToPeer({1: b"s" * 32}, b"n" * 16)
    assert not is_known(cast(Connection, Line(proof)))
    proven = cast(Connection, Line(SimpleNamespace(user="")))
    assert not is_known(proven)
    assert user_of(cast(Connection, Line(proof))) == "ANONYMOUS"
    assert is_known(cast(Connection, Line(CertificateUser("CN=b"))))

"""Doctor: the kind of server that listens on an address. Each fault is real."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla.client.bootstrap import Address
from ottla.tools.doctor import port
from ottla.tools.doctor.findings import State

Talk = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeouts."""
    monkeypatch.setattr(port, "PATIENCE_S", 0.3)


@contextmanager
def stranger(talk: Talk) -> Iterator[Address]:
    """Run a server that is no broker; `talk` handles each connection until it returns."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2.0)
                try:
                    talk(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield Address(*listener.getsockname()[:2])
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5.0)


def test_free_port_has_a_command_to_start_a_broker() -> None:
    """The remedy has the command for this port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.getsockname()[1]
    finding = port.examine(Address("127.0.0.1", number))
    assert finding.state is State.FAIL
    assert f"nothing listens on 127.0.0.1:{number}" in finding.found
    assert f"`ottla up --port {number}`" in finding.remedy


def test_unknown_name_is_reported() -> None:
    """Names below .invalid never resolve."""
    finding = port.examine(Address("broker.invalid", 9092))
    assert finding.state is State.FAIL
    assert "broker.invalid is not a known host" in finding.found
    assert "/etc/hosts" in finding.remedy


@pytest.mark.parametrize(
    ("greeting", "name"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"AMQP\x00\x00\x09\x01", "an AMQP broker"),
    ],
)
def test_server_with_a_greeting_is_identified(greeting: bytes, name: str) -> None:
    """The server sends a greeting at once, or after the first byte that it does not understand."""

    def talk(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(greeting)

    with stranger(talk) as address:
        finding = port.examine(address)
    assert finding.state is State.FAIL
    assert name in finding.found


def test_http_server_that_waits_for_a_line_is_identified() -> None:
    """Most HTTP servers wait for a line break, which a broker's request does not have."""

    def talk(connection: socket.socket) -> None:
        data = b""
        while b"\n" not in data:
            data += connection.recv(100) or b"\n"
        if data.startswith(b"GET "):
            connection.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")

    with stranger(talk) as address:
        assert "an HTTP server" in port.examine(address).found


def test_a_listener_of_tls_is_recognised() -> None:
    """A TLS server responds to plain text with an alert."""

    def talk(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")

    with stranger(talk) as address:
        finding = port.examine(address)
    assert "speaks TLS" in finding.found
    assert "security.protocol=SSL" in finding.remedy


def test_silent_server_is_no_broker() -> None:
    """A server that sends nothing until the timeout is no broker."""

    def talk(connection: socket.socket) -> None:
        while connection.recv(100):
            pass

    with stranger(talk) as address:
        finding = port.examine(address)
    assert "does not answer: this is not Kafka's protocol" in finding.found


def test_server_that_disconnects_may_require_a_login() -> None:
    """A SASL listener disconnects clients that begin with another request."""

    def talk(connection: socket.socket) -> None:
        connection.recv(100)

    with stranger(talk) as address:
        finding = port.examine(address)
    assert "closes the connection without a response" in finding.found
    assert "SASL" in finding.remedy

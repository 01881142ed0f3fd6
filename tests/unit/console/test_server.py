"""The console's connections: half requests, too many of them, and addresses without encryption."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.base.errors import ConfigError
from ottla.console import server as console_server
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings

SETTINGS = ConsoleSettings((), ":memory:", port=0, first_password="a long password")


@pytest.fixture
def server() -> Iterator[ConsoleServer]:
    """Return a console without clusters."""
    running = ConsoleServer(SETTINGS)
    running.start()
    yield running
    running.stop()


def connect(server: ConsoleServer, data: bytes = b"") -> socket.socket:
    """Return a connection on which so much of a request was sent."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(data)
    return connection


def is_served(server: ConsoleServer) -> bool:
    """Return True if a request gets a response."""
    with connect(server, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as peer:
        return peer.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /health HTTP/1.1\r\nHost",
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nuser=",
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_request_has_to_be_complete_in_time(
    server: ConsoleServer, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Also if single bytes arrive again and again."""
    monkeypatch.setattr(console_server, "REQUEST_S", 0.2)
    began = time.monotonic()
    with connect(server, data) as peer, suppress(ConnectionResetError, BrokenPipeError):
        peer.settimeout(0.02)
        while not _has_ended(peer):
            peer.sendall(b"x")
            assert time.monotonic() - began < 5


def _has_ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(100) == b""
    except TimeoutError:
        return False


@pytest.mark.parametrize("name", ["CONNECTIONS_MAX", "ADDRESS_CONNECTIONS_MAX"])
def test_half_requests_do_not_keep_others_out(
    server: ConsoleServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The oldest idle connection is closed for a new one."""
    monkeypatch.setattr(console_server, name, 3)
    peers = [connect(server, b"GET / HTTP/1.1\r\nHo") for _ in range(10)]
    assert is_served(server)
    assert is_served(server)
    for peer in peers:
        peer.close()


def test_connection_is_kept_between_requests(server: ConsoleServer) -> None:
    """A browser sends several requests on one connection."""
    request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(server) as peer:
        for _ in range(3):
            peer.sendall(request)
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += peer.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200 OK")


def test_server_does_not_listen_without_encryption_where_others_can_reach_it() -> None:
    """No socket is opened and no file is created; on loopback there is no warning."""
    refused = ConsoleServer(
        ConsoleSettings((), ":memory:", host="192.0.2.7", port=0, first_password="a long password")
    )
    with pytest.raises(ConfigError, match="does not encrypt"):
        refused.start()
    running = ConsoleServer(SETTINGS)
    running.start()
    assert running.warning == ""
    running.stop()

"""Crowds of strangers at a running broker: known clients are served, and the loop is not blocked."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest

from bench import servers
from bench.observed import ObservedBroker
from ottla.security import scram
from ottla.wire import headers
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.certificates import rsa_signed
from tests.robustness.conftest import Start

PAUSE_MS_MAX = 100.0
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_ann="secret" user_bob="other";'
)


_FILE = "listener.name.sasl_plaintext.sasl.plain.users.file"


class Listener:
    """A broker with a listener for users besides the one for tests."""

    def __init__(self, start: Start, protocol: str, settings: dict[str, str]) -> None:
        self.port, plain = servers.free_port(), servers.free_port()
        name = f"listener.name.{protocol.lower()}"
        users = {} if _FILE in settings else {f"{name}.plain.sasl.jaas.config": JAAS}
        self.broker: ObservedBroker = start(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{plain},{protocol}://127.0.0.1:{self.port}",
                "sasl.enabled.mechanisms": "PLAIN" if protocol.startswith("SASL") else "",
                **(users if protocol.startswith("SASL") else {}),
                **settings,
            }
        )

    def connect(self, source: str) -> socket.socket:
        """Connect from an address of this machine."""
        return socket.create_connection(("127.0.0.1", self.port), 10, (source, 0))

    def log_in(self, source: str, password: str, user: str = "ann") -> tuple[int, float]:
        """Log in; return the error code, and the seconds that it took."""
        begin = time.monotonic()
        with self.connect(source) as peer:
            error_code = log_in(peer, password, user)
        return error_code, time.monotonic() - begin


def log_in(peer: socket.socket, password: str, user: str = "ann") -> int:
    """Log in over a connection; return the error code."""
    ask(peer, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    message = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())
    return ask(peer, message, SaslAuthenticateResponse).error_code


def ask(peer: socket.socket, message, response: type):
    """Send a request in version 1, and return its response."""
    body = headers.encode_request(message, 1, 7, "test")
    peer.sendall(struct.pack(">i", len(body)) + body)
    (size,) = struct.unpack(">i", servers.receive_exactly(peer, 4))
    return headers.decode_response(response, 1, servers.receive_exactly(peer, size))[1]


@pytest.fixture
def listener(start: Start, probed_listener: None) -> Callable[..., Listener]:
    """Return a function that starts a broker with a listener."""
    return lambda protocol, settings: Listener(start, protocol, settings)


def test_idle_strangers_do_not_lock_users_out(listener: Callable[..., Listener]) -> None:
    """More connections than the broker allows, from one address: a user logs in from another."""
    site = listener("SASL_PLAINTEXT", {"max.connections": "300"})
    body = headers.encode_request(ApiVersionsRequest(), 0, 1, "idle")
    crowd = []
    try:
        for number in range(600):
            peer = site.connect("127.0.0.2")
            with contextlib.suppress(OSError):
                # Half of them send a request that is allowed before the login.
                peer.sendall(struct.pack(">i", len(body)) + body if number % 2 else b"")
            crowd.append(peer)
        code, seconds = site.log_in("127.0.0.1", "secret")
        assert code == 0
        assert seconds < 2
    finally:
        for peer in crowd:
            peer.close()


def test_guessed_passwords_get_slow_and_others_log_in(listener: Callable[..., Listener]) -> None:
    """One address guesses for three seconds; the user logs in from another one."""
    site = listener("SASL_PLAINTEXT", {})
    begin, codes = time.monotonic(), []
    while time.monotonic() - begin < 3:
        code, _ = site.log_in("127.0.0.2", "wrong")
        codes.append(code)
    assert len(codes) < 15
    assert set(codes) == {58}
    code, seconds = site.log_in("127.0.0.1", "secret")
    assert code == 0
    assert seconds < 1


def test_fifty_connections_that_guess_hardly_delay_a_login(
    listener: Callable[..., Listener],
) -> None:
    """A login takes at most twice as long as before, or a twentieth of a second (scenario 25)."""
    site = listener("SASL_PLAINTEXT", {})
    alone_s = median(site.log_in("127.0.0.1", "secret")[1] for _ in range(9))
    ended = threading.Event()

    def guess() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                site.log_in("127.0.0.2", "wrong")

    with ThreadPoolExecutor(50) as crowd:
        guesses = [crowd.submit(guess) for _ in range(50)]
        logins = [site.log_in("127.0.0.1", "secret") for _ in range(9)]
        ended.set()
        for each in guesses:
            each.result()
    assert {code for code, _ in logins} == {0}
    assert median(seconds for _, seconds in logins) < max(2 * alone_s, 0.05)


def test_guesses_at_hashed_passwords_do_not_delay_requests(
    listener: Callable[..., Listener], tmp_path: Path
) -> None:
    """Fifty strangers, each with its address and new users, keep a thread busy, and not the loop."""
    file = tmp_path / "users"
    hashed = scram.credential_of_password(
        scram.USERS_MECHANISM, "secret", bytes(16), scram.ITERATIONS_MAX
    )
    file.write_text(scram.users_text({"ann": hashed}))
    site = listener("SASL_PLAINTEXT", {_FILE: str(file)})
    ended = threading.Event()

    def guess(number: int) -> set[int]:
        codes, source = set(), f"127.0.1.{1 + number}"
        while not ended.is_set():
            codes.add(site.log_in(source, "wrong", str(time.monotonic_ns()))[0])
        return codes

    def latency(peer: socket.socket) -> float:
        begin = time.monotonic()
        ask(peer, ApiVersionsRequest(), ApiVersionsResponse)
        return time.monotonic() - begin

    with ThreadPoolExecutor(50) as crowd, site.connect("127.0.0.1") as peer:
        assert log_in(peer, "secret") == 0
        site.broker.take()
        guesses = [crowd.submit(guess, number) for number in range(50)]
        latencies: list[float] = []
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            latencies.append(latency(peer))
        ended.set()
        reading = site.broker.take()
        assert set().union(*(each.result() for each in guesses)) == {58}
    assert min(reading.lag_ms, reading.cpu_ms) < PAUSE_MS_MAX, reading.stack
    assert median(latencies) < 0.05


def test_many_tls_hellos_at_once_do_not_stop_the_loop(
    listener: Callable[..., Listener], tmp_path: Path
) -> None:
    """Four hundred clients say hello at the same moment: their handshakes are spread over turns."""
    certificate = rsa_signed(tmp_path)
    site = listener("SSL", {"ssl.keystore.location": str(certificate)})
    context = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    crowd = [site.connect(f"127.0.0.{2 + number % 20}") for number in range(400)]
    site.broker.take()
    try:
        for peer in crowd:
            peer.sendall(hello)
        for peer in crowd:
            # The server's hello is the response.
            assert peer.recv(1) == b"\x16"
            peer.close()
        reading = site.broker.take()
        assert min(reading.lag_ms, reading.cpu_ms) < PAUSE_MS_MAX, reading.stack
    finally:
        for peer in crowd:
            peer.close()

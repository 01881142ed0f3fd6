"""Loads on secured listeners, from several processes; prints one JSON object.

`handshakes` connects with TLS, sends ApiVersions, and disconnects, again and again. The handshakes
are full ones, because no session is resumed. `logins` connects without TLS and logs in. `produce`
and `fetch` send prepared requests through TLS, one connection for each process.
"""

import argparse
import base64
import functools
import hashlib
import hmac
import json
import multiprocessing
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from bench.load import (
    authenticate_request,
    exchange,
    fetch_request,
    frame,
    login_requests,
    plain_message,
    produce_request,
)
from bench.servers import receive_exactly
from ottla.wire import headers
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateResponse

SCRAM = "SCRAM-SHA-512"
_DIGEST = "sha512"
# Until all processes have been forked.
_START_SECONDS = 0.3
_BATCH_RECORDS, _RECORD_BYTES = 890, 1000
_FETCH_BYTES = 1 << 20
_DEPTH = 2

Step = Callable[[], int]
"""Does one unit of a load; returns the bytes of requests and responses."""


class Done(NamedTuple):
    """The units of one process, their bytes, and the seconds."""

    units: int
    size_bytes: int
    seconds: float


@functools.cache
def salted_password(password: str, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 of a password, computed once for each process and salt."""
    return hashlib.pbkdf2_hmac(_DIGEST, password.encode(), salt, iterations)


def scram_messages(user: str, password: str, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield both messages of a client with SCRAM-SHA-512 (RFC 5802), and be sent the challenge."""
    bare = f"n={user},r={nonce}"
    first = (yield f"n,,{bare}".encode()).decode()
    fields = dict(field.split("=", 1) for field in first.split(","))
    salt = base64.b64decode(fields["s"])
    salted = salted_password(password, salt, int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", _DIGEST)
    stored_key = hashlib.new(_DIGEST, client_key).digest()
    final = f"c=biws,r={fields['r']}"
    signature = hmac.digest(stored_key, f"{bare},{first},{final}".encode(), _DIGEST)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    yield f"{final},p={base64.b64encode(proof).decode()}".encode()


def connect(port: int, context: ssl.SSLContext | None = None) -> socket.socket:
    """Return a new connection, with a full handshake if it has TLS."""
    plain = socket.create_connection(("127.0.0.1", port), 30)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain if context is None else context.wrap_socket(plain)


def client_context() -> ssl.SSLContext:
    """Return the context of a client that spends no time on the chain of the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def handshakes(words: argparse.Namespace) -> Step:
    """Return a step that connects with TLS and receives a response to ApiVersions."""
    context = client_context()
    request = frame(headers.encode_request(ApiVersionsRequest(), 0, 1, "bench"))

    def step() -> int:
        with connect(words.port, context) as connection:
            return len(request) + len(exchange(connection, request))

    return step


def logins(words: argparse.Namespace) -> Step:
    """Return a step that connects without TLS and logs in."""
    user, _, password = words.user.partition(":")

    def step() -> int:
        with connect(words.port) as connection:
            if words.mechanism == SCRAM:
                log_in_with_scram(connection, user, password)
            else:
                hello, message = login_requests("PLAIN", plain_message(user, password))
                exchange(connection, hello)
                authenticated(exchange(connection, message))
        return 0

    return step


def log_in_with_scram(connection: socket.socket, user: str, password: str) -> None:
    """Log in on a connection."""
    messages = scram_messages(user, password, secrets.token_hex(12))
    hello, request = login_requests(SCRAM, next(messages))
    exchange(connection, hello)
    final = messages.send(authenticated(exchange(connection, request)))
    reply = authenticated(exchange(connection, authenticate_request(final)))
    assert reply.startswith(b"v="), reply


def authenticated(body: bytearray) -> bytes:
    """Return the server's message in a response of SaslAuthenticate; SystemExit if it failed."""
    _, response = headers.decode_response(SaslAuthenticateResponse, 2, body)
    if response.error_code:
        raise SystemExit(f"login failed: {response.error_message}")
    return bytes(response.auth_bytes)


def produce(words: argparse.Namespace) -> Step:
    """Return a step that produces a batch of 900 KB, with two requests in flight."""
    request = produce_request(words.topic, words.number, _BATCH_RECORDS, _RECORD_BYTES)
    return _in_flight(words.port, request, len(request))


def fetch(words: argparse.Namespace) -> Step:
    """Return a step that fetches 1 MB."""
    request = fetch_request(words.topic, words.number, _FETCH_BYTES)
    return _in_flight(words.port, request, 0)


def _in_flight(port: int, request: bytes, counted_bytes: int) -> Step:
    connection = connect(port, client_context())
    for _ in range(_DEPTH - 1):
        connection.sendall(request)
    buffer = memoryview(bytearray(2 * _FETCH_BYTES))

    def step() -> int:
        connection.sendall(request)
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        left = size
        while left:
            received = connection.recv_into(buffer[:left])
            if not received:
                raise SystemExit("the broker closed the connection")
            left -= received
        return counted_bytes or size

    return step


LOADS: dict[str, Callable[[argparse.Namespace], Step]] = {
    "handshakes": handshakes,
    "logins": logins,
    "produce": produce,
    "fetch": fetch,
}


def measure(words: argparse.Namespace, number: int, begin: float) -> Done:
    """Repeat a load from a time of the monotonic clock on, for `words.seconds`."""
    words.number = number
    step = LOADS[words.kind](words)
    time.sleep(max(0.0, begin - time.monotonic()))
    start = now = time.monotonic()
    count = size_bytes = 0
    while now < start + words.seconds:
        size_bytes += step()
        count += 1
        now = time.monotonic()
    return Done(count, size_bytes, now - start)


def summary(results: list[Done]) -> dict[str, float]:
    """Return the count of all processes and their bytes, and the sums of their rates."""
    return {
        "count": sum(done.units for done in results),
        "rate": sum(done.units / done.seconds for done in results),
        "gigabytes": sum(done.size_bytes for done in results) / 1e9,
        "mb_s": sum(done.size_bytes / done.seconds for done in results) / 1e6,
    }


def main() -> None:
    """Run one kind of load and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=LOADS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--user", default="", help="user and password, with a colon between them")
    parser.add_argument("--mechanism", choices=[SCRAM, "PLAIN"], default=SCRAM)
    parser.add_argument("--topic", default="", help="with a partition for each process")
    words = parser.parse_args()
    forks = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(words.processes, forks) as pool:
        begin = time.monotonic() + _START_SECONDS
        jobs = [pool.submit(measure, words, number, begin) for number in range(words.processes)]
        print(json.dumps(summary([job.result() for job in jobs])))


if __name__ == "__main__":
    main()

"""Damaged bytes at the entries of strangers: exchanges of SASL, hellos of TLS, requests of HTTP."""

import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bench import servers
from bench.observed import ObservedBroker
from ottla.wire import headers
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.certificates import self_signed
from tests.robustness.attack import PAUSE_MS_MAX
from tests.robustness.conftest import Start
from tests.wire.test_fuzz import mutate

pytestmark = pytest.mark.alone

FEW, MANY = 3_000, 100_000
_RSS_MIB_MAX = 10.0
# Tables of names and addresses are bounded, and fill in this time.
_FIRST = 1_500
_PATIENCE_S = 5.0
_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
_MESSAGES = {
    "PLAIN": (b"\0ann\0secret", b"\0ann\0wrong", b"ann\0ann\0secret"),
    "SCRAM-SHA-256": (b"n,,n=ann,r=abcdef", b"c=biws,r=abcdefghi,p=AAAA", b"y,a=ann,n=ann,r=x,e=1"),
    "SCRAM-SHA-512": (b"n,,n=eve,r=0123456789,tokenauth=true", b"c=biws,r=0123456789,p=AAAA"),
    "OAUTHBEARER": (
        b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJleHAiOjF9.\x01\x01",
        b"\x01",
        b"n,a=ann,\x01host=h\x01port=1\x01auth=Bearer e30.e30.AAAA\x01\x01",
    ),
}
_REQUESTS = (
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /healthz?a=%20b&c HTTP/1.0\r\n\r\n",
    b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;q=0.5\r\n\r\n",
    b"GET /jmx/read/java.lang:type=Memory HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"POST /jmx HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 17\r\n\r\n{\"type\":\"version\"}",
    b"POST /jmx HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\r\nGET / HTTP/1.1\r\n\r\n",
)  # fmt: skip


class Site(NamedTuple):
    """A broker, and the port of each entry."""

    broker: ObservedBroker
    ports: dict[str, int]


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def exchanges(source: random.Random) -> Iterator[bytes]:
    """Yield exchanges of SASL: one message, or all of their bytes, are damaged."""
    mechanisms = list(_MESSAGES)
    every = [message for messages in _MESSAGES.values() for message in messages]
    while True:
        mechanism = source.choice(mechanisms)
        is_raw, is_deep = source.random() < 0.3, source.random() < 0.7
        begin = SaslHandshakeRequest(mechanism=mechanism)
        frames = [headers.encode_request(begin, 0 if is_raw else 1, 1, "hostile")]
        for message in _MESSAGES[mechanism]:
            sent = mutate(source, message, source.choice(every)) if is_deep else message
            step = SaslAuthenticateRequest(auth_bytes=sent)
            frames.append(sent if is_raw else headers.encode_request(step, 2, 2, "hostile"))
        data = b"".join(map(_frame, frames))
        yield data if is_deep else mutate(source, data, _frame(frames[0]))


def hellos(source: random.Random) -> Iterator[bytes]:
    """Yield damaged hellos of TLS."""
    whole = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context()
        context.maximum_version = version
        outgoing = ssl.MemoryBIO()
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        whole.append(outgoing.read())
    while True:
        yield mutate(source, source.choice(whole), source.choice(whole))


def requests(source: random.Random) -> Iterator[bytes]:
    """Yield damaged requests of HTTP."""
    while True:
        yield mutate(source, source.choice(_REQUESTS), source.choice(_REQUESTS))


_ENTRIES: dict[str, Callable[[random.Random], Iterator[bytes]]] = {
    "SASL_PLAINTEXT": exchanges,
    "SSL": hellos,
    "HTTP": requests,
}


@pytest.fixture
def site(start: Start, probed_listener: None, tmp_path: Path) -> Site:
    """Return a broker with all entries."""
    ports = {name: servers.free_port() for name in ("PLAINTEXT", *_ENTRIES)}
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    certificate = self_signed(tmp_path)
    listeners = [f"{name}://{addresses[name]}" for name in ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")]
    broker = start(
        {
            "listeners": ",".join(listeners),
            "metrics.listener": addresses["HTTP"],
            # Tokens without a signature are read, too.
            "allow.insecure.listeners": "true",
            "sasl.enabled.mechanisms": ",".join(_MESSAGES),
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
            "ssl.keystore.location": str(certificate),
            "ssl.truststore.location": str(certificate.with_suffix(".crt")),
            "ssl.client.auth": "required",
            # Each attempt is made, and at once.
            "connection.failed.authentication.delay.ms": "0",
            "connection.failed.authentication.free.count": "1000000",
        }
    )
    return Site(broker, ports)


def play(port: int, data: bytes) -> int:
    """Send bytes, and read until the broker closes the connection; return what was received."""
    received = 0
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while more := peer.recv(65_536):
                received += len(more)
        except ConnectionError:
            # The broker closed it before it had read everything.
            return received
    return received


def attack(site: Site, entry: str, count: int) -> list[str]:
    """Send cases to an entry; return the exceeded limits."""
    port, broker = site.ports[entry], site.broker
    for data, _ in zip(_ENTRIES[entry](random.Random(2)), range(_FIRST), strict=False):
        play(port, data)
    broker.do("collect")
    before, lines_count = broker.take(), len(broker.lines())
    answered = 0
    for data, _ in zip(_ENTRIES[entry](random.Random(1)), range(count), strict=False):
        answered += play(port, data) > 0
    # Some inputs must be harmless, and some must be refused without a word.
    assert count / 10 < answered < count
    after = broker.take()
    broker.do("collect")
    grown = broker.take().rss_mib - before.rss_mib
    servers.ask(site.ports["PLAINTEXT"], MetadataRequest(topics=[]), MetadataResponse, 1)
    complaints = []
    if grown > _RSS_MIB_MAX:
        complaints.append(f"memory grew by {grown:.1f} MiB")
    if min(after.lag_ms, after.cpu_ms) > PAUSE_MS_MAX:
        complaints.append(f"the loop stopped for {after.lag_ms:.0f} ms: {after.stack}")
    lines = broker.lines()[lines_count:]
    complaints += [line for line in lines if "Traceback" in line or "Fatal" in line]
    if after.descriptors > before.descriptors:
        complaints.append(f"{after.descriptors - before.descriptors} descriptors stay open")
    return complaints


@pytest.mark.parametrize("entry", list(_ENTRIES))
def test_some_damaged_bytes_do_no_harm(site: Site, entry: str) -> None:
    """Memory and the number of descriptors stay the same, and there is no error and no pause."""
    assert attack(site, entry, FEW) == []


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            entry,
            marks=pytest.mark.nightly(
                "tests/robustness/test_hostile_entries.py::"
                f"test_some_damaged_bytes_do_no_harm[{entry}]"
            ),
        )
        for entry in _ENTRIES
    ],
)
@pytest.mark.timeout(900)
def test_many_damaged_bytes_do_no_harm(site: Site, entry: str) -> None:
    """The same for a hundred thousand inputs."""
    assert attack(site, entry, MANY) == []

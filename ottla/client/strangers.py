"""The kind of a server that does not respond as a broker does.

Its first bytes identify it, or its responses to the two protocols that are likely: TLS and HTTP.
"""

import socket
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.loading import deferred_module
from ottla.client.bootstrap import Address

# Only a server that is no broker needs it.
if TYPE_CHECKING:
    import ssl
else:
    ssl = deferred_module("ssl")

_TLS_ALERT = b"\x15\x03"
# First bytes that others send unasked, or in response to bytes that they do not understand.
_GREETINGS = (
    (b"HTTP/", "an HTTP server"),
    (b"SSH-", "an SSH server"),
    (b"-ERR", "Redis"),
    (b"AMQP", "an AMQP broker such as RabbitMQ"),
    (b"220 ", "a mail or FTP server"),
)
_GET = b"GET / HTTP/1.0\r\n\r\n"
_BYTES = 4096


class OtherServer(NamedTuple):
    """A server that is no broker in plain text: a sentence about it, and whether it speaks TLS."""

    text: str
    is_tls: bool


def identify(address: Address, received: bytes, patience_s: float) -> OtherServer | None:
    """Return the kind of a server that has responded with these bytes; None if it is not known.

    Opens up to two connections, which wait `patience_s` seconds each.
    """
    protocol = tls_version(address, patience_s)
    if protocol is not None or received.startswith(_TLS_ALERT):
        spoken = protocol or "it refuses plain text"
        return OtherServer(f"{address} speaks TLS ({spoken}), not plain text", is_tls=True)
    received = received or http_response(address, patience_s)
    # A length, which begins each response, is four bytes.
    for greeting, name in _GREETINGS:
        if received and greeting.startswith(received[: len(greeting)]):
            return OtherServer(f"{name} listens on {address}, not a broker", is_tls=False)
    return None


def tls_version(address: Address, patience_s: float) -> str | None:
    """Return the TLS version that the server accepts, or None if it does not speak TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    # Nothing is trusted or sent: the handshake only identifies the protocol.
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, patience_s) as plain,
            context.wrap_socket(plain, server_hostname=address.host) as spoken,
        ):
            return spoken.version()
    except (OSError, ValueError):
        return None


def http_response(address: Address, patience_s: float) -> bytes:
    """Return the first bytes of the response to an HTTP request; none if there is no response."""
    try:
        with socket.create_connection(address, patience_s) as connection:
            return response_to(connection, _GET, patience_s) or b""
    except OSError:
        return b""


def response_to(connection: socket.socket, request: bytes, patience_s: float) -> bytes | None:
    """Return the first bytes of the response; b"" if the connection is closed, None after a
    timeout.
    """
    connection.settimeout(patience_s)
    try:
        connection.sendall(request)
        return connection.recv(_BYTES)
    except TimeoutError:
        return None
    except ConnectionError:
        return b""

"""Checks of an address: a broker listens there, another kind of server, or no process.

The check sends a Kafka request first. If another protocol responds, it tries TLS and HTTP.
"""

import socket
import ssl
import struct
import time
from typing import NamedTuple

from ottla.base.platform import LISTENERS_COMMAND
from ottla.client import strangers
from ottla.client.bootstrap import Address
from ottla.client.security.options import Security
from ottla.tools.doctor.findings import Finding, fail, ok

PATIENCE_S = 3.0
# ApiVersions, version 0, correlation id 1, no client id: every Kafka since 0.10 accepts it.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_ANSWER = struct.Struct(">ii")


class Resolved(NamedTuple):
    """The addresses of a host name, or the finding that the name cannot be resolved."""

    addresses: tuple[str, ...]
    finding: Finding | None = None


def resolve(address: Address, check: str) -> Resolved:
    """Resolve a host name as every client does."""
    try:
        entries = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "this is not the name of a host"
        return Resolved(
            (),
            fail(
                check,
                f"{address.host} is not a known host: {reason}",
                "Check the spelling, or add the name to DNS or to /etc/hosts.",
            ),
        )
    return Resolved(tuple(dict.fromkeys(str(item[4][0]) for item in entries)))


def examine(address: Address, check: str = "port", security: Security | None = None) -> Finding:
    """Report which kind of server responds on the address."""
    resolved = resolve(address, check)
    if resolved.finding is not None:
        return resolved.finding
    started = time.monotonic()
    try:
        with (
            socket.create_connection(address, PATIENCE_S) as plain,
            plain if security is None else security.wrap(plain, address.host) as connection,
        ):
            response = strangers.response_to(connection, _API_VERSIONS, PATIENCE_S)
    except ssl.SSLError as error:
        return fail(
            check,
            f"{address} cannot be reached with TLS: {error}",
            "Check security.protocol and ssl.truststore.location in the file of --command-config "
            "or of the profile: the listener may be one in plain text, or have another certificate.",
        )
    except ConnectionRefusedError:
        return fail(
            check,
            f"nothing listens on {address}",
            f"Start a broker with `ottla up --port {address.port}`, or name the right address "
            "with --bootstrap.",
        )
    except TimeoutError:
        return fail(
            check,
            f"{address} does not respond within {PATIENCE_S:g} s",
            "Check that the machine is up, and that no firewall or security group blocks the port.",
        )
    except OSError as error:
        return fail(
            check, f"{address} cannot be reached: {error.strerror or error}",
            "Check the network connection to this address.",
        )  # fmt: skip
    if _is_kafka(response):
        milliseconds = (time.monotonic() - started) * 1000
        return ok(check, f"{address} speaks Kafka's protocol ({milliseconds:.0f} ms)")
    return _stranger(address, response, check)


def _is_kafka(response: bytes | None) -> bool:
    if response is None or len(response) < _ANSWER.size:
        return False
    size, correlation_id = _ANSWER.unpack_from(response)
    return bool(size >= 6 and correlation_id == 1)


def _stranger(address: Address, response: bytes | None, check: str) -> Finding:
    """Identify a server that does not respond as a broker does."""
    stranger = strangers.identify(address, response or b"", PATIENCE_S)
    if stranger is not None and stranger.is_tls:
        return fail(
            check,
            stranger.text,
            "Name a properties file with security.protocol=SSL or SASL_SSL with --command-config, or "
            "use the broker's PLAINTEXT listener (see its option listeners).",
        )
    if stranger is not None:
        return fail(check, stranger.text, "Name the broker's port with --bootstrap; 9092 is usual.")
    if response == b"":
        return fail(
            check,
            f"{address} closes the connection without a response",
            "It may require authentication (SASL), or may not be a broker: look at the log of the server that "
            "listens there.",
        )
    behaviour = (
        f"responds with {response[:16]!r}" if response else "accepts a request and does not respond"
    )
    return fail(
        check,
        f"{address} {behaviour}: this is not Kafka's protocol",
        f"Find the process that listens there (`{LISTENERS_COMMAND}`), and name the broker's port with --bootstrap.",
    )

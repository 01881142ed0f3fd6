"""TLS of listeners, and of connections to brokers: contexts, key stores, versions and suites."""

import asyncio
from contextvars import ContextVar
from typing import Protocol

PEM = "PEM"
"""The format of key stores by default."""
VERSION_NAMES = ("TLSv1.2", "TLSv1.3")
"""The versions of TLS, the oldest one first; OpenSSL 3 has disabled those before."""
HANDSHAKE_SECONDS = 10.0
"""A peer that has not completed the handshake by then is disconnected."""


class Accepted(Protocol):
    """An accepted socket, which does not block."""

    def send(self, data: bytes, /) -> int:
        """Send as much as the kernel accepts; return how much that is."""
        ...


ACCEPTED: ContextVar[Accepted | None] = ContextVar("ACCEPTED", default=None)
"""The accepted socket of the connection with TLS whose transport is created in this context."""


def channel_binding(transport: asyncio.BaseTransport) -> bytes:
    """Return the value by which both ends know their handshake (tls-unique); empty without TLS.

    `security.broker_proof` has the reasons for this type of binding.
    """
    tls = transport.get_extra_info("ssl_object")
    return b"" if tls is None else tls.get_channel_binding("tls-unique") or b""

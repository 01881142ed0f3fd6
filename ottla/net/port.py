"""The Net port: the only way in which brokers and clients listen and connect.

The real one is `ottla.net.listener.RealNet`; the simulated one is
`ottla.testing.sim.net.SimNetwork`.
"""

import asyncio
import errno
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ottla.base.buffers import Buffer, RangeSource

ProtocolFactory = Callable[[], asyncio.BufferedProtocol]


class SocketBuffers(NamedTuple):
    """The kernel's buffers of each accepted connection in bytes; -1: the system chooses."""

    send_bytes: int = -1
    receive_bytes: int = -1


SYSTEM_BUFFERS = SocketBuffers()


class Handshake(Protocol):
    """A connection whose TLS is not established: it may become a connection of the endpoint."""

    @property
    def is_stranger(self) -> bool:
        """True: nothing is known about the peer before TLS."""
        ...

    def close(self, reason: str) -> None:
        """Give the connection up."""
        ...


class Handshakes(Protocol):
    """The TLS handshakes of an endpoint that are not complete."""

    # The order in which they begin (`ottla.net.admission.handshakes`); keys are the listener's.
    handshake_order: Any

    def begin(self, handshake: Handshake, host: str) -> Handshake | None:
        """Count a handshake with an address; return the one to close: another one, this, or None."""
        ...

    def end(self, handshake: Handshake, host: str) -> None:
        """Remove a handshake that `begin` has counted."""
        ...

    def failed(self, host: str, reason: str) -> None:
        """Note that a handshake has failed, for OpenSSL's reason: `CERTIFICATE_VERIFY_FAILED`, …"""
        ...


@dataclass(slots=True)
class ListenerTls:
    """How the connections of a listener are encrypted; `context` is replaced with a certificate."""

    context: ssl.SSLContext
    handshakes: Handshakes


class Listener(Protocol):
    """A listening address; `port` is the assigned port if 0 was requested."""

    @property
    def host(self) -> str:
        """The address that it is bound to."""
        ...

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        ...

    async def close(self) -> None:
        """Stop accepting; existing connections stay open. Idempotent."""
        ...


class FileSocket(Protocol):
    """The socket below a transport, for operations that the transport lacks; never blocks.

    Used only while the transport has no unsent bytes. Raises OSError like send(2).
    """

    def send(self, parts: Sequence[Buffer], *, has_more: bool) -> int:
        """Send bytes without joining them; return how many were accepted.

        There are at most 1024 parts. `has_more` delays a packet that is not full.
        """
        ...

    def send_file(self, source: RangeSource, position: int, size_bytes: int) -> int:
        """Send bytes of a file; return how many the socket has accepted."""
        ...

    def queued_bytes(self) -> int:
        """Return how many bytes of the socket's queue the peer has not received."""
        ...


class Net(Protocol):
    """Stream sockets that carry `asyncio.BufferedProtocol`s."""

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
        tls: ListenerTls | None = None,
    ) -> Listener:
        """Accept on host and port, with a protocol from `factory` for each connection.

        With `tls`, a connection is made after its handshake.

        Raises OSError if the address is in use.
        """
        ...

    async def connect(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect; raises OSError if nothing listens at the address, or if a TLS handshake fails."""
        ...

    async def resolve(self, host: str) -> list[str]:
        """Return the addresses of a host; raises OSError if the name is not known."""
        ...

    def file_socket(self, transport: asyncio.BaseTransport) -> FileSocket | None:
        """Return the means to send files through a transport; None if it cannot send files."""
        ...


def remedy(error: OSError, other_port: str) -> str:
    """Return what to do if a listener cannot be opened; `other_port` says how to choose its port."""
    # Negative numbers come from the resolver.
    if (error.errno or 0) < 0 or error.errno == errno.EADDRNOTAVAIL:
        return "Use an address of this machine, or 0.0.0.0 for all of them"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"This user may not use a port that low: {other_port}"
    return f"Stop the process that uses it, or {other_port}"

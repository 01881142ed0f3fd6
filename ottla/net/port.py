"""The Net port: the only way the broker world listens and connects.

The real one is `ottla.net.listener.RealNet`; the twin is `ottla.testing.sim.net.SimNetwork`.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ottla.base.buffers import Buffer, RangeSource

ProtocolFactory = Callable[[], asyncio.BufferedProtocol]


class Listener(Protocol):
    """A listening address; `port` is the real one where 0 was asked for."""

    @property
    def host(self) -> str:
        """Address that it is bound to."""
        ...

    @property
    def port(self) -> int:
        """Port that it is bound to."""
        ...

    async def close(self) -> None:
        """Stop accepting; connections that exist stay. Idempotent."""
        ...


class FileSocket(Protocol):
    """The socket below a transport, for what the transport cannot do; never waits.

    Used only while the transport holds nothing that is to be sent before. OSError as of send(2).
    """

    def send(self, data: Buffer, *, has_more: bool) -> int:
        """Send; return how many bytes the socket has taken. `has_more` delays a packet that is not full."""
        ...

    def send_file(self, source: RangeSource, position: int, size_bytes: int) -> int:
        """Send bytes of a file; return how many the socket has taken."""
        ...

    def queued_bytes(self) -> int:
        """Return how many bytes the socket holds that the peer has not received."""
        ...


class Net(Protocol):
    """Stream sockets that carry `asyncio.BufferedProtocol`s."""

    async def listen(self, host: str, port: int, factory: ProtocolFactory) -> Listener:
        """Accept on host and port, one protocol from `factory` each; OSError if it is taken."""
        ...

    async def connect(
        self, host: str, port: int, factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect; OSError if nobody listens there."""
        ...

    def file_socket(self, transport: asyncio.BaseTransport) -> FileSocket | None:
        """Return how to send files through a transport of this net; None if that cannot be done."""
        ...

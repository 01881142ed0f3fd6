"""The Net port: the only way the broker world listens and connects.

The real one is `ottla.net.listener.RealNet`; the twin is `ottla.testing.sim.net.SimNetwork`.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

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

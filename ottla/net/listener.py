"""The real Net: TCP on the running event loop, asyncio's or uvloop's."""

import asyncio

from ottla.net.port import ProtocolFactory

# Connections that may wait to be accepted while the loop is busy.
BACKLOG = 1024


class RealListener:
    """A listening socket of the event loop."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self._address = server.sockets[0].getsockname()

    @property
    def host(self) -> str:
        """Address that it is bound to."""
        return str(self._address[0])

    @property
    def port(self) -> int:
        """Port that it is bound to."""
        return int(self._address[1])

    async def close(self) -> None:
        """Stop accepting; from Python 3.12 on, wait_closed() would wait for every connection."""
        self._server.close()


class RealNet:
    """Sockets of the operating system."""

    async def listen(self, host: str, port: int, factory: ProtocolFactory) -> RealListener:
        """Accept on host and port; an empty host means every address of the machine."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            factory, host or None, port, backlog=BACKLOG, reuse_address=True
        )
        return RealListener(server)

    async def connect(
        self, host: str, port: int, factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect over TCP."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(factory, host, port)
        return transport, protocol

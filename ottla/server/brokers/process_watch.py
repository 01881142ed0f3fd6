"""Notices that the process of another broker has ended, before its session does.

An idle connection is reset as soon as the process is gone; that a new one is refused proves it: a
broker listens while it is registered. A broker of Apache Kafka registers a moment before it listens,
so a broker that was never reached has some time. A broker that is only silent (its machine or the
network is down) is not noticed here: its session ends.
"""

import asyncio
from typing import cast

from ottla.base.clock import Clock
from ottla.net.port import Net

CONNECT_SECONDS = 10.0
# Between two attempts to connect to a broker that is not reachable, or that closes connections.
PAUSE_SECONDS = 1.0
# A refusal is believed when it is repeated after this time.
REPEAT_SECONDS = 0.02
# How long a broker that was never reached may refuse connections.
FIRST_SECONDS = 3.0


class _IdleConnection(asyncio.BufferedProtocol):
    """A connection on which nothing is sent; `lost` completes when it is closed."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray(1)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return a buffer for bytes that no broker sends."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Ignore bytes that no broker sends."""

    def eof_received(self) -> bool:
        """Close the connection as well."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete `lost`."""
        if not self.lost.done():
            self.lost.set_result(None)


async def wait_until_gone(net: Net, clock: Clock, host: str, port: int) -> None:
    """Return when connections to the address are refused twice in a row, for three seconds at first."""
    refused_count, pause = 0, REPEAT_SECONDS
    first_until = clock.monotonic() + FIRST_SECONDS
    while refused_count < 2 or clock.monotonic() < first_until:
        started_at = clock.monotonic()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, protocol = await net.connect(host, port, _IdleConnection)
        except ConnectionRefusedError:
            refused_count += 1
            await clock.sleep(REPEAT_SECONDS)
            continue
        except OSError:
            refused_count = 0
            await clock.sleep(PAUSE_SECONDS)
            continue
        refused_count, first_until = 0, started_at
        try:
            await cast(_IdleConnection, protocol).lost
        finally:
            transport.abort()
        # A broker closes idle connections, and may close new ones immediately.
        is_short = clock.monotonic() - started_at < PAUSE_SECONDS
        pause = min(2 * pause, PAUSE_SECONDS) if is_short else REPEAT_SECONDS
        await clock.sleep(pause)

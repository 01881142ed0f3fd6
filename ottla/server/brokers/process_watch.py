"""Notices that the process of another broker has ended, before its session does.

An idle connection is reset as soon as the process ends. If a new connection is then refused, the
process has ended, because a broker listens while it is registered. A broker of Apache Kafka
registers a moment before it listens. So if such brokers are possible, a refusal does not count in
the first moments of a registration that has not been reached yet. A broker that is only silent (its
machine or its network is down) is not noticed here: its session expires.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from ottla.base.clock import Clock
from ottla.net.port import Net
from ottla.net.requests import RequestConnection, TlsSource
from ottla.server.current import Contacts
from ottla.wire.fields import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest

CONNECT_SECONDS = 10.0
_GREETING = ApiVersionsRequest()
# Version 0 has no fields, and every broker responds to it.
_GREETING_VERSION = 0
# Between two attempts to connect to a broker that is not reachable, or that closes connections.
PAUSE_SECONDS = 1.0
# A refusal is believed when it is repeated after this time.
REPEAT_SECONDS = 0.02
# How long a broker that was never reached may refuse connections.
FIRST_SECONDS = 3.0


class Registration(NamedTuple):
    """A registration of a broker, by the epoch, its address, and its time by the broker's clock.

    The time is 0 if the broker certainly listened before it registered.
    """

    broker_id: int
    epoch: int
    host: str
    port: int
    registered_ms: int = 0

    def is_new(self, now_ms: int) -> bool:
        """Return True if the broker may not listen yet; also if its clock is ahead of this one's."""
        return now_ms - self.registered_ms < FIRST_SECONDS * 1000


class _IdleConnection(RequestConnection):
    """A connection on which almost nothing is sent; `lost` completes when it is closed."""

    def __init__(self) -> None:
        super().__init__("process-watch")
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def greet(self) -> None:
        """Send a request: a broker closes connections without a first one."""
        self.send(_GREETING, _GREETING_VERSION).add_done_callback(_ignore)

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete `lost`."""
        super().connection_lost(exc)
        if not self.lost.done():
            self.lost.set_result(None)


def _ignore(response: "asyncio.Future[Message]") -> None:
    # Retrieved, so that a response that never arrives is not reported as an error.
    if not response.cancelled():
        response.exception()


def _ignore_reached() -> None:
    pass


async def wait_until_gone(
    net: Net,
    clock: Clock,
    registration: Registration,
    contacts: Contacts,
    on_reached: Callable[[], None] = _ignore_reached,
    *,
    tls: TlsSource = lambda: None,
) -> None:
    """Return when connections are refused twice in a row, for three seconds if it is new.

    `contacts` has the connections of other watches too, and gets the connections of this one.
    `on_reached` is called with every connection.
    """
    refused_count, pause, reached = 0, 0.0, contacts.reached
    is_new = registration.is_new(clock.time_ms())
    first_until = clock.monotonic() + (FIRST_SECONDS if is_new else 0.0)
    host, port = registration.host, registration.port
    while refused_count < 2 or (registration not in reached and clock.monotonic() < first_until):
        started_at = clock.monotonic()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, protocol = await net.connect(host, port, _IdleConnection, tls())
        except ConnectionRefusedError:
            refused_count += 1
            contacts.lost(registration.broker_id, clock.monotonic())
            await clock.sleep(REPEAT_SECONDS)
            continue
        except OSError:
            refused_count = 0
            await clock.sleep(PAUSE_SECONDS)
            continue
        refused_count = 0
        contacts.connected(registration.broker_id, registration)
        on_reached()
        connection = cast(_IdleConnection, protocol)
        try:
            connection.greet()
            await connection.lost
            contacts.lost(registration.broker_id, clock.monotonic())
        finally:
            transport.abort()
        # A broker closes idle connections, and may close new ones immediately.
        is_short = clock.monotonic() - started_at < PAUSE_SECONDS
        pause = min(max(2 * pause, REPEAT_SECONDS), PAUSE_SECONDS) if is_short else 0.0
        await clock.sleep(pause)

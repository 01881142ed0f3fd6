"""Responses to clients that cannot authenticate: they come late, and then the connection is closed.

Follows Kafka's Selector.maybeDelayCloseOnAuthenticationFailure.
"""

import asyncio
from typing import TypeVar

from ottla.base.logs import provoked_logger
from ottla.net.connection import Connection

R = TypeVar("R")

DELAY = "connection.failed.authentication.delay.ms"

# The client may have chosen a part of the text.
_REASON_MAX = 200

_log = provoked_logger(__name__)


def answer_late(
    connection: Connection, response: R, reason: str, delay_ms: int
) -> "asyncio.Future[R]":
    """Respond after connection.failed.authentication.delay.ms, and disconnect then.

    So passwords cannot be tried quickly. Until then no other request of the connection is handled.
    """
    shown = reason[:_REASON_MAX]
    _log.warning("client not authenticated peer=%s reason=%s", connection.peer_address, shown)
    loop = asyncio.get_running_loop()
    later: asyncio.Future[R] = loop.create_future()

    def respond() -> None:
        if later.done():
            return
        later.set_result(response)
        # After the response, which the future's callback sends.
        loop.call_soon(loop.call_soon, connection.close, "the client is not authenticated")

    loop.call_later(delay_ms / 1000, respond)
    return later

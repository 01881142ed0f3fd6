"""Requests whose responses come from the metadata: they wait until this broker has it.

A broker that has just started knows neither brokers nor topics until the controller informs it. A
response from that state would be wrong, and it harms: librdkafka removes every broker that is not
listed, so a list without brokers leaves it none to ask again. Apache Kafka with KRaft serves no
request before that time; with ZooKeeper it sends the empty response.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ProtocolError
from ottla.server.context import RequestContext
from ottla.server.quotas.steps import counted

Handle = Callable[[RequestContext, Any], Any]

# How long a request waits, in seconds. Then its connection is closed: its client asks another
# broker.
WAIT_SECONDS = 10.0


def after_first_metadata(handle: Handle) -> Handle:
    """Return `handle` with the wait; the dispatcher calls the result as it would call `handle`."""

    def checked(context: RequestContext, request: Any) -> Any:
        broker = context.broker
        if broker.current.informed.is_set():
            return handle(context, request)
        work = counted(_handle_later(handle, context, request), context.usage, broker.clock)
        return broker.tasks.spawn(work, f"request {context.api_key} before the first metadata")

    return checked


async def _handle_later(handle: Handle, context: RequestContext, request: Any) -> Any:
    """Return the response, or the error that the dispatcher reports to the client."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await context.broker.current.informed.wait()
    except TimeoutError:
        return ProtocolError("no controller has informed this broker yet")
    try:
        result = handle(context, request)
        return await result if inspect.isawaitable(result) else result
    except ApiError as error:
        return error

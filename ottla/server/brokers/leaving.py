"""Controlled shutdown: a broker gives up its leaders before it stops.

Follows KafkaServer.controlledShutdown.
"""

import asyncio
import logging

from ottla.base.clock import Clock
from ottla.base.errors import ApiError
from ottla.controller.loop import Controller
from ottla.server.brokers.controller_link import ControllerLink
from ottla.server.brokers.remote import known_code
from ottla.server.current import Current
from ottla.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

_log = logging.getLogger(__name__)

VERSION = 3
_TIMEOUT_MS = 10_000


async def leave(
    node_id: int,
    current: Current,
    controller: Controller,
    link: ControllerLink,
    clock: Clock,
    is_hurried: asyncio.Event,
) -> None:
    """Have the controller move this broker's leaders away, unless no other broker is live.

    Ends without success after controlled.shutdown.max.retries, or when `is_hurried` is set.
    """
    options = current.options
    if not options.boolean("controlled.shutdown.enable"):
        return
    retries = options.integer("controlled.shutdown.max.retries")
    backoff_seconds = options.integer("controlled.shutdown.retry.backoff.ms") / 1000
    for attempt in range(retries + 1):
        if len(current.image.brokers) < 2 or is_hurried.is_set():
            return
        if attempt:
            await _sleep(clock, backoff_seconds, is_hurried)
        try:
            remaining = await _ask(node_id, controller, link)
        except ApiError as error:
            _log.warning("controlled shutdown without response error=%s", error.code.name)
            continue
        if not remaining:
            _log.info("controlled shutdown complete id=%d", node_id)
            return
        _log.warning(
            "controlled shutdown incomplete, partitions without other leaders=%d", remaining
        )
    _log.warning("broker stops without a controlled shutdown id=%d", node_id)


async def _ask(node_id: int, controller: Controller, link: ControllerLink) -> int:
    """Return how many partitions this broker still leads although they have other replicas."""
    if controller.is_active:
        epoch = controller.broker_epoch
        return len(await controller.shut_down(node_id, epoch, timeout_ms=_TIMEOUT_MS))
    request = ControlledShutdownRequest(broker_id=node_id, broker_epoch=controller.broker_epoch)
    response = await link.request(request, VERSION, ControlledShutdownResponse)
    if response.error_code:
        raise ApiError(known_code(response.error_code))
    return len(response.remaining_partitions)


async def _sleep(clock: Clock, seconds: float, is_hurried: asyncio.Event) -> None:
    """Sleep until `is_hurried` is set at the latest."""
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    hurried = asyncio.ensure_future(is_hurried.wait())
    await asyncio.wait([sleeping, hurried], return_when=asyncio.FIRST_COMPLETED)
    sleeping.cancel()
    hurried.cancel()

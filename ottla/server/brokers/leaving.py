"""Controlled shutdown: a broker gives up its leaders before it stops.

Follows KafkaServer.controlledShutdown.
"""

import asyncio
import logging
from collections.abc import Callable

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
# The broker finds within this time that another attempt is due, or futile.
_STEP_SECONDS = 0.05


async def leave(
    node_id: int,
    current: Current,
    controller: Controller,
    link: ControllerLink,
    clock: Clock,
    is_hurried: asyncio.Event,
) -> None:
    """Have the controller move this broker's leaders away, unless no other broker is live.

    Another attempt follows after controlled.shutdown.retry.backoff.ms, or when there is a new
    controller. Ends without success after controlled.shutdown.max.retries, when `is_hurried` is
    set, or as soon as the other brokers have stopped.
    """
    asked_epoch = current.image.controller_epoch

    def is_futile() -> bool:
        return is_hurried.is_set() or len(current.image.brokers) < 2

    def is_due() -> bool:
        return is_futile() or current.image.controller_epoch != asked_epoch

    options = current.options
    if not options.boolean("controlled.shutdown.enable"):
        return
    retries = options.integer("controlled.shutdown.max.retries")
    backoff_seconds = options.integer("controlled.shutdown.retry.backoff.ms") / 1000
    for attempt in range(retries + 1):
        if attempt:
            await _sleep(clock, backoff_seconds, is_due)
        if is_futile():
            return
        asked_epoch = current.image.controller_epoch
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


async def _sleep(clock: Clock, seconds: float, is_due: Callable[[], bool]) -> None:
    """Sleep before another attempt, until `is_due` at the longest."""
    until = clock.monotonic() + seconds
    while not is_due() and clock.monotonic() < until:
        await clock.sleep(min(_STEP_SECONDS, max(0.0, until - clock.monotonic())))

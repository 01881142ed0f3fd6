"""Proposals of ISRs while the cluster has no controller."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.logs import REPEATS_MAX, Repeats
from ottla.base.tasks import Tasks
from ottla.replication.ports import IsrProposal
from ottla.server.brokers.isr_proposals import IsrProposals
from ottla.wire.messages.alter_partition import AlterPartitionResponse

_ATTEMPTS = 3 * REPEATS_MAX


class Clock(RealClock):
    """Sleeping takes no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Link:
    """A way to a controller that is elected after some attempts, and then knows no topic."""

    def __init__(self) -> None:
        self.attempts = 0

    async def request(self, *_: object) -> AlterPartitionResponse:
        self.attempts += 1
        if self.attempts <= _ATTEMPTS:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)


async def test_attempts_without_a_controller_write_a_limited_number_of_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A proposal is sent again every 50 ms, for minutes if need be: the log does not grow by all."""
    caplog.set_level(logging.INFO, logger="ottla.server.brokers.isr_proposals")
    caplog.handler.addFilter(limit := Repeats())
    link, controller, tasks = Link(), SimpleNamespace(is_active=False, broker_epoch=1), Tasks()
    proposals = IsrProposals(1, cast(Any, controller), cast(Any, link), Clock(), tasks)
    proposal = IsrProposal(
        topic="orders", topic_id=b"id", partition=0, leader_epoch=1, partition_epoch=1, new_isr=()
    )
    future = proposals.propose(proposal)
    try:
        async with asyncio.timeout(10):
            while link.attempts <= _ATTEMPTS:
                await asyncio.sleep(0)
    finally:
        caplog.handler.removeFilter(limit)
        future.cancel()
        await tasks.close()
    lines = [item for item in caplog.messages if item.startswith("proposals without response")]
    assert len(lines) == REPEATS_MAX

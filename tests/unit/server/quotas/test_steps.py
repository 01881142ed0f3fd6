"""A timed coroutine: only its steps on the event loop count."""

import asyncio
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.server.quotas.clients import LimitedClient, RequestUsage
from ottla.server.quotas.rates import QuotaWindow, Rate
from ottla.server.quotas.steps import Timed, counted


class Clock:
    """A clock that the work itself advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def usage_of(clock: Clock) -> tuple[RequestUsage, Rate]:
    """Return the usage of a client that is limited to 1 %, and its measure."""
    client = LimitedClient(QuotaWindow())
    client.request = Rate(1, QuotaWindow())
    usage = RequestUsage(client, clock.now)
    usage.stopped(clock.now)
    return usage, client.request


async def test_the_steps_of_a_task_count_and_its_waits_do_not() -> None:
    """Three steps of a second count, and the waits of an hour between them do not."""
    clock = Clock()
    usage, rate = usage_of(clock)
    waits: list[asyncio.Future[None]] = []

    async def work() -> str:
        for _ in range(2):
            clock.now += 1
            waits.append(asyncio.get_running_loop().create_future())
            await waits[-1]
        clock.now += 1
        return "done"

    task = asyncio.get_running_loop().create_task(Timed(work(), usage, clock))
    for number in range(2):
        while len(waits) == number:
            await asyncio.sleep(0)
        clock.now += 3600
        waits[-1].set_result(None)
    assert await task == "done"
    usage.settle(clock.now)
    assert rate.per_second(clock.now * 1000) == pytest.approx(300 / 10)


async def test_exception_propagates() -> None:
    """The coroutine sees exceptions that are raised inside or thrown in by a cancellation."""
    clock = Clock()
    seen: list[str] = []

    async def fails() -> None:
        raise ValueError("no")

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def start(work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(Timed(work, usage_of(clock)[0], clock))

    with pytest.raises(ValueError, match="no"):
        await start(fails())
    task = start(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_it_can_be_awaited_and_closed() -> None:
    """The timed coroutine behaves as any coroutine."""
    clock = Clock()

    async def gives() -> int:
        return 3

    assert await Timed(gives(), usage_of(clock)[0], clock) == 3
    Timed(gives(), usage_of(clock)[0], clock).close()


async def test_work_of_a_client_without_quotas_is_not_timed() -> None:
    """Work of a client without quotas is not timed."""

    async def gives() -> int:
        return 3

    work = gives()
    assert counted(work, None, RealClock()) is work
    assert await work == 3
    assert await counted(gives(), usage_of(Clock())[0], RealClock()) == 3

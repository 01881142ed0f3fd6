"""The memory of all unfinished requests."""

import asyncio

from ottla.net.limits import Budget


async def test_memory_that_a_handler_keeps_is_held_until_it_answers() -> None:
    """Or gives up."""
    budget = Budget(100)
    answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    budget.hold_until(1000, answered)
    assert budget.held_bytes == 1000
    answered.cancel()
    await asyncio.sleep(0)
    assert budget.held_bytes == 0

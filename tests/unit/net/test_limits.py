"""The memory of all incomplete requests."""

import asyncio

from ottla.net.limits import Budget


async def test_memory_of_a_handler_is_held_until_it_answers() -> None:
    """The memory is also released if the handler is cancelled."""
    budget = Budget(100)
    answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    budget.hold_until(1000, answered)
    assert budget.held_bytes == 1000
    answered.cancel()
    await asyncio.sleep(0)
    assert budget.held_bytes == 0

"""The memory of all unfinished requests."""

import asyncio

from ottla.net.limits import Budget


def test_one_holder_may_overdraw() -> None:
    """A request larger than the whole budget can be read; the next one waits."""
    budget = Budget(100)
    assert budget.take(1000)
    assert not budget.take(1)


def test_the_line_is_served_in_order() -> None:
    """Who waits first is granted first, and a newcomer does not overtake."""
    budget = Budget(100)
    served: list[str] = []
    budget.hold(100)
    budget.wait(60, lambda: served.append("first"))
    budget.wait(60, lambda: served.append("second"))
    budget.wait(60, lambda: served.append("third"))
    assert not budget.take(1)
    budget.give_back(100)
    assert served == ["first", "second"]
    budget.give_back(60)
    assert served == ["first", "second", "third"]


def test_who_leaves_the_line_lets_others_pass() -> None:
    """A lost connection does not keep the line waiting."""
    budget = Budget(100)
    served: list[str] = []
    budget.hold(100)

    def gone() -> None:
        served.append("gone")

    budget.wait(10, gone)
    budget.wait(10, lambda: served.append("next"))
    budget.leave(gone)
    budget.give_back(100)
    assert served == ["next"]


def test_waiting_with_room_is_granted_at_once() -> None:
    """Room that came back between asking and waiting is not missed."""
    budget = Budget(100)
    served: list[str] = []
    budget.wait(10, lambda: served.append("now"))
    assert served == ["now"]
    assert budget.held_bytes == 10


async def test_memory_that_a_handler_keeps_is_held_until_it_answers() -> None:
    """Or gives up."""
    budget = Budget(100)
    answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    budget.hold_until(1000, answered)
    assert budget.held_bytes == 1000
    answered.cancel()
    await asyncio.sleep(0)
    assert budget.held_bytes == 0

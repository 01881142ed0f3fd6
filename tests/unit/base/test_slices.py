"""The lane of large work: one slice in a turn of the loop, fairly by origin."""

import asyncio
from collections import Counter

import pytest

from ottla.base.clock import RealClock
from ottla.base.slices import LANE_SLICE_SECONDS, Lane, Turn


class StepClock(RealClock):
    """Time that advances when work is done."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def lane(clock: StepClock) -> Lane:
    return Lane(clock)


class Loop:
    """Counts the iterations of the event loop."""

    def __init__(self) -> None:
        self.iteration = 0
        self._count()

    def _count(self) -> None:
        self.iteration += 1
        asyncio.get_running_loop().call_soon(self._count)


async def work(lane: Lane, origin: str, slices: int, log: list[str]) -> None:
    """Use several slices, and note each."""
    async with lane.work(origin) as turn:
        for _ in range(slices):
            log.append(origin)
            await use_slice(lane, turn)


async def use_slice(lane: Lane, turn: Turn) -> None:
    clock = lane.clock
    assert isinstance(clock, StepClock)
    clock.now += 2 * LANE_SLICE_SECONDS
    await turn.pause()


async def test_the_loop_turns_after_each_slice(lane: Lane) -> None:
    """Also if there is no other work: other requests are served in between."""
    loop = Loop()
    seen = []
    async with lane.work("a") as turn:
        for _ in range(5):
            seen.append(loop.iteration)
            await use_slice(lane, turn)
    assert len(set(seen)) == 5


async def test_no_pause_before_the_slice_is_over(lane: Lane) -> None:
    """Short steps do not turn the loop."""
    loop = Loop()
    async with lane.work("a") as turn:
        before = loop.iteration
        for _ in range(100):
            await turn.pause()
        assert loop.iteration == before
        await turn.end_slice()
        assert loop.iteration > before


async def test_one_slice_runs_in_a_turn_however_much_work_there_is(lane: Lane) -> None:
    """A hundred large requests delay others by one slice, not by a hundred."""
    loop = Loop()
    slices: Counter[int] = Counter()

    async def busy(origin: str) -> None:
        async with lane.work(origin) as turn:
            for _ in range(3):
                slices[loop.iteration] += 1
                await use_slice(lane, turn)
            assert turn.used_seconds == pytest.approx(6 * LANE_SLICE_SECONDS)

    await asyncio.gather(*(busy(f"host-{number}") for number in range(100)))
    assert max(slices.values()) == 1
    assert slices.total() == 300


async def test_work_that_has_begun_comes_first(lane: Lane) -> None:
    """So that few large requests are in memory."""
    log: list[str] = []
    await asyncio.gather(work(lane, "a", 3, log), work(lane, "b", 3, log), work(lane, "c", 1, log))
    assert log == ["a"] * 3 + ["b"] * 3 + ["c"]


async def test_origins_take_turns(lane: Lane) -> None:
    """The request of another address does not wait behind the requests of a crowd."""
    log: list[str] = []
    crowd = [work(lane, "crowd", 1, log) for _ in range(10)]
    await asyncio.gather(*crowd, work(lane, "honest", 1, log))
    assert log.index("honest") <= 2


async def test_urgent_work_has_every_other_slice(lane: Lane) -> None:
    """A long request of a tool has begun: the requests of producers do not wait for its end."""
    log: list[str] = []

    async def urgent() -> None:
        async with lane.work("host", is_urgent=True) as turn:
            for _ in range(3):
                log.append("urgent")
                await use_slice(lane, turn)

    await asyncio.gather(work(lane, "host", 10, log), urgent(), urgent())
    # Work that ends, and the next that begins, take a slice together.
    assert log[:14].count("urgent") == 6
    assert log.count("host") == 10


async def test_others_run_while_work_waits_for_something_else(lane: Lane) -> None:
    """A request that waits for the controller does not hold the lane."""
    log: list[str] = []
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def waiting() -> str:
        async with lane.work("a") as turn:
            return await turn.outside(answered)

    first = asyncio.ensure_future(waiting())
    await asyncio.sleep(0)
    await work(lane, "b", 2, log)
    assert log == ["b", "b"]
    answered.set_result("done")
    assert await first == "done"
    await work(lane, "c", 1, log)


async def test_cancelled_work_passes_the_lane_on(lane: Lane) -> None:
    """Whether it waits for its first slice, for another one, or has just been given it."""
    log: list[str] = []
    for turns in range(8):
        tasks = [asyncio.ensure_future(work(lane, f"{n}", 3, log)) for n in range(4)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks[:3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert log[-1] == "3"
        assert lane.waiting_count == 0


async def test_failed_work_passes_the_lane_on(lane: Lane) -> None:
    """The next work begins."""
    with pytest.raises(ValueError, match="bug"):
        async with lane.work("a"):
            raise ValueError("bug")
    log: list[str] = []
    await work(lane, "b", 1, log)
    assert log == ["b"]

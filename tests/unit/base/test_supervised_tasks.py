"""Supervised tasks: restarted with back-off, counted, and reported while they fail."""

import asyncio

from ottla.base.clock import Clock
from ottla.base.tasks import ONCE, RESTART_SECONDS_MAX, WELL_SECONDS, Tasks
from ottla.testing.sim.world import World


class Work:
    """Work that fails a given number of times, and then runs until it is cancelled."""

    def __init__(self, clock: Clock, failures: int) -> None:
        self.clock = clock
        self.failures = failures
        self.started: list[float] = []
        self.is_running = False

    async def run(self) -> None:
        self.started.append(self.clock.monotonic())
        if len(self.started) <= self.failures:
            raise LookupError("a bug")
        self.is_running = True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.is_running = False


def test_a_task_that_fails_is_restarted_with_back_off() -> None:
    """The delays are 1, 2, 4, … seconds, at most a minute; each failure is counted and reported."""

    async def scenario(world: World) -> None:
        clock = world.machine("m").clock
        heard: list[str] = []
        tasks = Tasks(lambda name, error: heard.append(f"{name}: {error}"), clock)
        work = Work(clock, 9)
        tasks.supervise(work.run, "flush", "t-0")
        await clock.sleep(400)
        pauses = [
            round(later - earlier)
            for earlier, later in zip(work.started, work.started[1:], strict=False)
        ]
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, RESTART_SECONDS_MAX]
        assert tasks.failures == {"flush": 9}
        assert heard == ["flush t-0: a bug"] * 9
        assert work.is_running
        await tasks.close()
        assert not work.is_running

    with World(1) as world:
        world.run(scenario(world))


def test_failed_task_is_reported_until_it_has_run_for_two_minutes() -> None:
    """The report has the task's name and its last error."""

    async def scenario(world: World) -> None:
        clock = world.machine("m").clock
        tasks = Tasks(clock=clock)
        work = Work(clock, 1)
        tasks.supervise(work.run, "maintenance")
        await clock.sleep(WELL_SECONDS - 1)
        assert tasks.failing() == {"maintenance": "LookupError: a bug"}
        await clock.sleep(2)
        assert tasks.failing() == {}
        await tasks.close()

    with World(1) as world:
        world.run(scenario(world))


def test_work_that_returns_or_is_cancelled_is_not_restarted() -> None:
    """Waiting for a cancelled task waits for the end of its work."""

    async def scenario(world: World) -> None:
        clock = world.machine("m").clock
        tasks = Tasks(clock=clock)

        async def once() -> None:
            returned.append(clock.monotonic())

        returned: list[float] = []
        await tasks.supervise(once, "once")
        work = Work(clock, 0)
        task = tasks.supervise(work.run, "controller")
        await clock.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert not work.is_running
        await clock.sleep(100)
        assert len(returned) == len(work.started) == 1
        assert not tasks.failures

    with World(1) as world:
        world.run(scenario(world))


async def test_failures_of_unsupervised_work_are_counted() -> None:
    """Such failures share one label, because the name may come from a client."""
    tasks = Tasks()

    async def fail() -> None:
        raise LookupError("a bug")

    await asyncio.wait([tasks.spawn(fail(), "Fetch from somebody")])
    await asyncio.sleep(0)
    assert tasks.failures == {ONCE: 1}


async def test_every_kind_is_counted_before_it_fails() -> None:
    """Prometheus sees no increase in a counter that begins with 1."""
    tasks = Tasks()
    assert tasks.failure_counts() == {ONCE: 0}

    async def work() -> None:
        """Return at once."""

    await tasks.supervise(work, "flush", "orders-0")
    assert tasks.failure_counts() == {"flush": 0, ONCE: 0}
    assert tasks.failing() == {}

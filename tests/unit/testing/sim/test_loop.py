"""The event loop on virtual time."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Iterator

import pytest

from ottla.base.rng import SeededRng
from ottla.testing.sim.loop import (
    WALL_START_MS,
    Deadlock,
    SimLoop,
    SimulationBreach,
    VirtualClock,
)
from ottla.testing.sim.trace import Trace


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """Return a loop with one seed."""
    with SimLoop(SeededRng(3)) as sim_loop:
        yield sim_loop


def order_of_tasks(seed: int) -> tuple[list[int], str]:
    """Run ten tasks that are ready at once; return their order and the hash of the trace."""
    trace = Trace()
    order: list[int] = []

    async def note(number: int) -> None:
        await asyncio.sleep(0.5)
        order.append(number)

    async def main() -> None:
        await asyncio.gather(*(note(number) for number in range(10)))

    with SimLoop(SeededRng(seed), trace) as loop:
        loop.run(main())
    return order, trace.digest


def test_a_seed_decides_the_order_of_tasks() -> None:
    """The same seed has the same order and trace; other seeds have others."""
    assert order_of_tasks(1) == order_of_tasks(1)
    results = [order_of_tasks(seed) for seed in range(5)]
    assert len({tuple(order) for order, _ in results}) > 1
    assert len({digest for _, digest in results}) > 1
    assert all(sorted(order) == list(range(10)) for order, _ in results)


def test_plain_callbacks_keep_their_order(loop: SimLoop) -> None:
    """Programs may rely on this guarantee of asyncio."""
    order: list[int] = []

    async def main() -> None:
        for number in range(50):
            loop.call_soon(order.append, number)
        await asyncio.sleep(1)

    loop.run(main())
    assert order == list(range(50))


def test_a_day_passes_at_once(loop: SimLoop) -> None:
    """Waiting takes no real time, and timers fire at their time."""
    clock = VirtualClock(loop)
    began = time.monotonic()

    async def main() -> float:
        before = clock.monotonic()
        await clock.sleep(86_400)
        return clock.monotonic() - before

    assert loop.run(main()) == pytest.approx(86_400)
    assert time.monotonic() - began < 5


def test_the_wall_clock_moves_alone(loop: SimLoop) -> None:
    """Setting the clock back two days affects no timer."""
    clock = VirtualClock(loop)

    async def main() -> None:
        await clock.sleep(1)
        clock.move_wall(-2 * 86_400_000)
        await clock.sleep(1)

    loop.run(main())
    assert clock.time_ms() == WALL_START_MS + 2000 - 2 * 86_400_000
    assert clock.monotonic() == pytest.approx(1002)


def test_deadlock_is_reported(loop: SimLoop) -> None:
    """Instead of hanging, the simulation names the waiting tasks."""

    async def waits_for_nobody() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="waits_for_nobody"):
        loop.run(waits_for_nobody())


def test_time_standing_still_is_reported(loop: SimLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that never waits for time would otherwise run forever."""
    monkeypatch.setattr("ottla.testing.sim.loop.STEPS_AT_ONE_MOMENT_MAX", 100)

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Deadlock, match="spins"):
        loop.run(spins())


@pytest.mark.parametrize(
    "reach",
    [
        "loop.call_soon_threadsafe(print)",
        "loop.run_in_executor(None, print)",
        "loop.create_server(print, '127.0.0.1', 0)",
        "loop.create_connection(print, '127.0.0.1', 1)",
        "loop.add_signal_handler(2, print)",
        "asyncio.to_thread(print)",
    ],
)
def test_access_to_the_real_world_raises(loop: SimLoop, reach: str) -> None:
    """A thread or a socket would cause an order that does not depend on the seed."""

    async def main() -> None:
        result = eval(reach, {"loop": loop, "asyncio": asyncio, "print": print})
        await result

    with pytest.raises(SimulationBreach, match="go through the ports"):
        loop.run(main())


def test_a_killed_process_never_runs_again(loop: SimLoop) -> None:
    """Timers, tasks and cleanup of a killed process have no effect; other processes continue."""
    message: list[str] = []

    async def talk(name: str) -> None:
        loop.call_later(3, message.append, f"{name} timer")
        try:
            while True:
                await asyncio.sleep(1)
                message.append(name)
        finally:
            loop.call_soon(message.append, f"{name} last words")

    async def main() -> None:
        dead, alive = loop.process("dead"), loop.process("alive")
        buried: list[str] = []
        dead.on_kill(lambda: buried.append("dead"))
        loop.spawn(dead, talk("dead"))
        survivor = loop.spawn(alive, talk("alive"))
        await asyncio.sleep(1.5)
        dead.kill()
        dead.kill()
        assert buried == ["dead"]
        await asyncio.sleep(3)
        survivor.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await survivor

    loop.run(main())
    assert message.count("dead") == 1
    assert "dead timer" not in message
    assert "dead last words" not in message
    assert message.count("alive") == 4
    assert "alive timer" in message


def test_tasks_of_a_killed_process_never_start(loop: SimLoop) -> None:
    """The garbage collector does not complain about it either, at a time that does not depend on
    the seed.
    """
    message: list[str] = []

    async def talk() -> None:
        message.append("begun after death")

    async def lives() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            left.append(loop.create_task(talk()))

    async def main() -> None:
        dead = loop.process("dead")
        loop.spawn(dead, lives())
        await asyncio.sleep(1)
        dead.kill()
        await asyncio.sleep(1)

    left: list[asyncio.Task[None]] = []
    loop.run(main())
    assert len(left) == 1
    left.clear()
    gc.collect()
    assert message == []
    loop.raise_failures()


def test_unnoticed_failures_are_raised_at_the_end(loop: SimLoop) -> None:
    """A failed callback fails the simulation, even if its result was never awaited."""

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(AssertionError, match="unnoticed") as failure:
        loop.run(main())
    assert isinstance(failure.value.__cause__, ZeroDivisionError)

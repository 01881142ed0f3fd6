"""A clock for work that must be done in slices: each reading advances it by a millisecond.

Steps and virtual time are counted, not measured, so the result is the same on every machine.
"""

import asyncio
from collections.abc import Callable

from ottla.base.clock import RealClock


class StepClock(RealClock):
    """Monotonic time that advances by a millisecond at each reading; a sleep lets the event loop
    run.

    `done` is the amount of work done so far; `slices` are the amounts between two pauses.
    """

    def __init__(self, done: Callable[[], int] = lambda: 0) -> None:
        self.now = 100.0
        self.slices: list[int] = []
        self._done = done
        self._before = 0

    def monotonic(self) -> float:
        self.now += 0.001
        return self.now

    async def sleep(self, seconds: float) -> None:
        done = self._done()
        self.slices.append(done - self._before)
        self._before = done
        await asyncio.sleep(0)

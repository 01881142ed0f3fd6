"""A clock for work that must be done in slices: each look at it takes a millisecond.

Steps and virtual time are counted, nothing is measured: what comes out is the same on every machine.
"""

import asyncio
from collections.abc import Callable

from ottla.base.clock import RealClock


class StepClock(RealClock):
    """Monotonic time that moves by a millisecond a look; a sleep gives the loop its turn.

    `done` tells how much of the work has been done; `slices` is how much between two pauses.
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

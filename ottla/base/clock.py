"""The Clock port: the only source of time for the broker.

Timers are the event loop's (`call_later`), so that a simulated loop controls them. Wall-clock time
may jump in either direction; it is used for record timestamps and retention only, never for
timeouts.
"""

import time
from typing import TYPE_CHECKING, Protocol

from ottla.base.loading import deferred_module

# Blocking clients read the time and need no event loop.
if TYPE_CHECKING:
    import asyncio
else:
    asyncio = deferred_module("asyncio")


class Clock(Protocol):
    """Wall-clock and monotonic time; the twin is `ottla.testing.sim.loop.VirtualClock`."""

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        ...

    def cpu_seconds(self) -> float:
        """Return the processor time that the calling thread has used."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of monotonic time."""
        ...


def steady_ms(clock: Clock) -> int:
    """Return monotonic time in whole milliseconds, for delays that are independent of the wall
    clock.
    """
    return round(clock.monotonic() * 1000)


class RealClock:
    """The machine's clocks."""

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return the machine's monotonic time in seconds."""
        return time.monotonic()

    def cpu_seconds(self) -> float:
        """Return the calling thread's processor time."""
        return time.thread_time()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)

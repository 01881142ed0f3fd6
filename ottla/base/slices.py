"""Long work in time slices: it lets other tasks of the event loop run every few milliseconds.

By time, not by count, because the cost of a step depends on the disk.
"""

from ottla.base.clock import Clock

SLICE_SECONDS = 0.01


class Slices:
    """Time slices of one piece of work; call `pause` after every step."""

    def __init__(self, clock: Clock, seconds: float = SLICE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends = 0.0
        self.begin()

    @property
    def is_over(self) -> bool:
        """True if the slice has lasted long enough."""
        return self._clock.monotonic() >= self._ends

    def begin(self) -> None:
        """Start a slice now, after the work was suspended in another way."""
        self._ends = self._clock.monotonic() + self._seconds

    async def pause(self) -> bool:
        """Let other tasks run if the slice is over; return True if so: state may have changed then."""
        if not self.is_over:
            return False
        await self._clock.sleep(0)
        self.begin()
        return True

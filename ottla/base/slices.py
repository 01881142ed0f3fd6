"""Long work in slices: whoever works on the event loop for long gives it back every few milliseconds.

By time, not by count: what one step costs is another on every disk.
"""

from ottla.base.clock import Clock

SLICE_SECONDS = 0.01


class Slices:
    """Time slices of one piece of work; `pause` is called after every step of it."""

    def __init__(self, clock: Clock, seconds: float = SLICE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends = 0.0
        self.begin()

    @property
    def is_over(self) -> bool:
        """Tell whether the slice has lasted long enough."""
        return self._clock.monotonic() >= self._ends

    def begin(self) -> None:
        """Begin a slice now: what gave the old one up has come back."""
        self._ends = self._clock.monotonic() + self._seconds

    async def pause(self) -> bool:
        """Let others run if the slice is over; tell whether they ran: state may have changed then."""
        if not self.is_over:
            return False
        await self._clock.sleep(0)
        self.begin()
        return True

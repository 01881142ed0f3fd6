"""By which time something is old: pure, on a wall clock that may leap and a monotonic one that does not."""

# What the two clocks may differ by between two looks before it counts as a leap.
_LEAP_MS = 60_000
# How long a leap forward must last to be believed.
_DOUBT_SECONDS = 3600.0


class AgeingClock:
    """The time (ms) by which things are too old: the wall clock's, or what it was before a leap.

    A leap forward that is mended within an hour costs nothing; one that lasts was right. A leap
    backward is believed at once, as it makes everything younger.
    """

    def __init__(self, wall_ms: int, monotonic: float) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._leap_ms = 0
        self._believed_at = 0.0

    def observe(self, wall_ms: int, monotonic: float) -> int:
        """Look at both clocks, which is to be done now and then; return the time."""
        elapsed_ms = round((monotonic - self._monotonic) * 1000)
        leap_ms = wall_ms - self._wall_ms - elapsed_ms
        self._wall_ms, self._monotonic = wall_ms, monotonic
        if abs(leap_ms) > _LEAP_MS:
            self._leap_ms += leap_ms
            self._believed_at = monotonic + _DOUBT_SECONDS
        if monotonic >= self._believed_at:
            self._leap_ms = 0
        return wall_ms - max(self._leap_ms, 0)

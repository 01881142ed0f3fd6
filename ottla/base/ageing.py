"""The time by which the age of data is measured, if the wall clock may leap: pure.

It combines a wall clock that may leap with a monotonic clock that does not.
"""

# The largest difference between the two clocks, since the last observation, that is not a leap.
_LEAP_MS = 60_000
# A leap forward is accepted after it has lasted this long.
_DOUBT_SECONDS = 3600.0


class AgeingClock:
    """The time (ms) by which ages are measured: the wall clock's, without recent leaps forward.

    A leap forward that is corrected within an hour has no effect; one that lasts longer is
    accepted. A leap backward is accepted at once, because it makes all data younger.
    """

    def __init__(self, wall_ms: int, monotonic: float) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._leap_ms = 0
        self._believed_at = 0.0

    def observe(self, wall_ms: int, monotonic: float) -> int:
        """Compare both clocks, which the caller does regularly; return the time (ms)."""
        elapsed_ms = round((monotonic - self._monotonic) * 1000)
        leap_ms = wall_ms - self._wall_ms - elapsed_ms
        self._wall_ms, self._monotonic = wall_ms, monotonic
        if abs(leap_ms) > _LEAP_MS:
            self._leap_ms += leap_ms
            self._believed_at = monotonic + _DOUBT_SECONDS
        if monotonic >= self._believed_at:
            self._leap_ms = 0
        return wall_ms - max(self._leap_ms, 0)

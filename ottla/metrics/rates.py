"""The rates of meters: a mean since the start, and averages of the last 1, 5 and 15 minutes.

The averages decay exponentially, as in Kafka's meters, but they are computed when they are read
instead of every five seconds, so a meter without readers costs nothing. The first read starts
with the mean. Times are in seconds of a monotonic clock.
"""

import math
from typing import NamedTuple

# Averages of meters that have not been read for so long start again.
_FORGET_SECONDS = 3600.0
_METERS_MAX = 100_000
_WINDOWS_SECONDS = (60.0, 300.0, 900.0)
# Reads of a meter that follow one another faster do not change its averages.
_STEP_SECONDS = 1.0


class Rates(NamedTuple):
    """Events per second."""

    mean: float
    one_minute: float
    five_minutes: float
    fifteen_minutes: float


class _MeterState(NamedTuple):
    at: float
    events: float
    averages: tuple[float, ...]


class MeterRates:
    """The rates of all meters that are read; `started_at` is when they began to count."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        # In the order in which they were last read.
        self._meters: dict[str, _MeterState] = {}

    def of(self, name: str, count: float, now: float) -> Rates:
        """Return the rates of a meter that has this count."""
        seconds = max(now - self._started_at, _STEP_SECONDS)
        mean = count / seconds
        former = self._meters.get(name)
        if former is None or now - former.at > _FORGET_SECONDS or count < former.events:
            averages = (mean,) * len(_WINDOWS_SECONDS)
        elif now - former.at < _STEP_SECONDS:
            return Rates(mean, *former.averages)
        else:
            elapsed = now - former.at
            rate = (count - former.events) / elapsed
            averages = tuple(
                rate + (average - rate) * math.exp(-elapsed / window)
                for window, average in zip(_WINDOWS_SECONDS, former.averages, strict=True)
            )
        self._meters.pop(name, None)
        if len(self._meters) >= _METERS_MAX:
            del self._meters[next(iter(self._meters))]
        self._meters[name] = _MeterState(now, count, averages)
        return Rates(mean, *averages)

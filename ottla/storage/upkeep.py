"""When the upkeep of logs is due, and by which time records grow old: pure, on clocks that may leap.

Intervals are measured by the monotonic clock: a wall clock that is set back stops nothing. Ages are
measured by the wall clock, as Kafka measures them, but not at once after it has leapt forward.
"""

from typing import NamedTuple

from ottla.base.options import Snapshot

# What the two clocks may differ by between two looks before it counts as a leap.
_LEAP_MS = 60_000
# How long a leap forward must last to be believed.
_DOUBT_SECONDS = 3600.0


class Intervals(NamedTuple):
    """Milliseconds between two rounds of each kind; the defaults are Kafka's."""

    first_retention_ms: int = 30_000
    retention_ms: int = 300_000
    recovery_points_ms: int = 60_000
    log_starts_ms: int = 60_000
    expiration_ms: int = 600_000

    @classmethod
    def from_options(cls, snapshot: Snapshot) -> "Intervals":
        """Read the broker options."""
        return cls(
            snapshot.integer("log.initial.task.delay.ms"),
            snapshot.integer("log.retention.check.interval.ms"),
            snapshot.integer("log.flush.offset.checkpoint.interval.ms"),
            snapshot.integer("log.flush.start.offset.checkpoint.interval.ms"),
            snapshot.integer("producer.id.expiration.check.interval.ms"),
        )


class Rounds:
    """Which rounds are due; `now` is the monotonic clock's, in seconds."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._last: dict[str, float] = {}

    def take_due(self, kind: str, interval_ms: int, now: float, first_ms: int = -1) -> bool:
        """Tell whether a round of this kind is to be made now; the first may come after another time."""
        last = self._last.get(kind)
        if last is None and first_ms >= 0:
            due = self._started + first_ms / 1000
        else:
            due = (self._started if last is None else last) + interval_ms / 1000
        if now < due:
            return False
        self._last[kind] = now
        return True


class AgeingClock:
    """The time (ms) by which records are too old: the wall clock's, or what it was before a leap.

    A leap forward that is mended within an hour costs no record; one that lasts was right. A leap
    backward is believed at once, as it makes everything younger.
    """

    def __init__(self, wall_ms: int, monotonic: float) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._leap_ms = 0
        self._believed_at = 0.0

    def observe(self, wall_ms: int, monotonic: float) -> int:
        """Look at both clocks, which is to be done every few seconds; return the time."""
        elapsed_ms = round((monotonic - self._monotonic) * 1000)
        leap_ms = wall_ms - self._wall_ms - elapsed_ms
        self._wall_ms, self._monotonic = wall_ms, monotonic
        if abs(leap_ms) > _LEAP_MS:
            self._leap_ms += leap_ms
            self._believed_at = monotonic + _DOUBT_SECONDS
        if monotonic >= self._believed_at:
            self._leap_ms = 0
        return wall_ms - max(self._leap_ms, 0)

"""The schedule of log upkeep: pure, on the monotonic clock, so that a changed wall clock stops
nothing.

Ages are measured by the wall clock, as in Kafka, except for some time after it has leapt forward:
see `ottla.base.ageing`.
"""

from typing import NamedTuple

from ottla.base.options import Snapshot


class Intervals(NamedTuple):
    """Milliseconds between two runs of each task; the defaults are Kafka's."""

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
    """The tasks that are due; `now` is the monotonic clock's, in seconds."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._last: dict[str, float] = {}

    def take_due(self, kind: str, interval_ms: int, now: float, first_ms: int = -1) -> bool:
        """Return True if a task is due now; `first_ms` is the delay before its first run."""
        last = self._last.get(kind)
        if last is None and first_ms >= 0:
            due = self._started + first_ms / 1000
        else:
            due = (self._started if last is None else last) + interval_ms / 1000
        if now < due:
            return False
        self._last[kind] = now
        return True

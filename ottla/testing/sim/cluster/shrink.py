"""Shrinks the schedule of a failing run to a shorter one that fails, too.

First it leaves out faults, many at once, then one by one, until none can be left out (delta
debugging, Zeller's ddmin); then it shortens the faults that remain. Every attempt is a run with the
same seed, so the result is deterministic.
"""

from collections.abc import Callable

from ottla.testing.sim.cluster.scenario import Fault, Schedule

Fails = Callable[[Schedule], bool]

RUNS_MAX = 200
_SECONDS_MIN = 0.05


class _Attempts:
    """Counts the runs, and remembers the shortest schedule that fails."""

    def __init__(self, fails: Fails, schedule: Schedule, runs_max: int) -> None:
        self._fails = fails
        self.best = schedule
        self.runs_left = runs_max

    def adopts(self, schedule: Schedule) -> bool:
        """Run a schedule; adopt it and return True if it fails."""
        if self.runs_left <= 0:
            return False
        self.runs_left -= 1
        if not self._fails(schedule):
            return False
        self.best = schedule
        return True


def shrink(schedule: Schedule, fails: Fails, *, runs_max: int = RUNS_MAX) -> Schedule:
    """Return a part of a failing schedule that fails; `fails` runs a schedule.

    At most `runs_max` schedules are run.
    """
    attempts = _Attempts(fails, schedule, runs_max)
    _leave_out(attempts)
    _shorten(attempts)
    return attempts.best


def _leave_out(attempts: _Attempts) -> None:
    size = max(1, len(attempts.best) // 2)
    while attempts.runs_left > 0:
        has_shrunk = False
        start = 0
        while start < len(attempts.best):
            candidate = attempts.best[:start] + attempts.best[start + size :]
            if attempts.adopts(candidate):
                has_shrunk = True
            else:
                start += size
        if size == 1 and not has_shrunk:
            return
        size = max(1, size // 2)


def _shorten(attempts: _Attempts) -> None:
    for index in range(len(attempts.best)):
        while attempts.best[index].seconds > _SECONDS_MIN:
            fault = attempts.best[index]
            shorter = fault._replace(seconds=round(fault.seconds / 2, 3))
            if not attempts.adopts(_replaced(attempts.best, index, shorter)):
                break


def _replaced(schedule: Schedule, index: int, fault: Fault) -> Schedule:
    return (*schedule[:index], fault, *schedule[index + 1 :])

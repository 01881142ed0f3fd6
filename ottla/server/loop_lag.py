"""The lag of the event loop: a gauge with its histogram, fed by a timer, and a log line per pause.

While one callback runs, no client is served; so no callback may run for long, and this verifies it.
`LoopLag` is the pure gauge, whose reader resets the maximum; `LoopWatch` is its timer. A timer sees
a pause only from its own deadline on: it measures up to one interval less than the real pause.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.base.clock import Clock

_log = logging.getLogger(__name__)

# Upper bounds (seconds) of the histogram; longer lags have a bucket of their own.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
INTERVAL_SECONDS = 0.02
PAUSE_SECONDS = 0.1
# A pause in seconds that is logged, even if other processes used the processor.
_LONG_SECONDS = 1.0
# At most one line in this many seconds, however many pauses there are.
_LINE_SECONDS = 10.0
# Work on the loop that is shorter is not named, in seconds.
_NOTED_SECONDS = 0.005
_NOTED_MAX = 8
# The idle share of the loop covers two to three of these periods.
_SPAN_SECONDS = 30.0

# Names the work that ran since a time of the monotonic clock.
WhoRan = Callable[[float], str]


class LoopLag:
    """The lags recorded so far, in seconds: the number in each bucket, their sum, the longest."""

    def __init__(self) -> None:
        # Not cumulative: `counts[i]` is the number of lags of at most BUCKETS[i] and more than the
        # bucket before.
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum_seconds = 0.0
        self.pauses_count = 0
        self._longest = 0.0

    @property
    def count(self) -> int:
        """The number of recorded lags."""
        return sum(self.counts)

    @property
    def longest_seconds(self) -> float:
        """The longest lag since the last `take_longest`."""
        return self._longest

    def take_longest(self) -> float:
        """Return the longest lag since the last call, and reset it."""
        longest, self._longest = self._longest, 0.0
        return longest

    def note(self, late_seconds: float) -> bool:
        """Record one lag; return True if it was a pause."""
        late = max(0.0, late_seconds)
        self.counts[bisect_left(BUCKETS, late)] += 1
        self.sum_seconds += late
        self._longest = max(self._longest, late)
        is_pause = late > PAUSE_SECONDS
        self.pauses_count += is_pause
        return is_pause


class LoopWatch:
    """The timer that feeds a `LoopLag`, on the loop that runs when `start` is called."""

    def __init__(
        self, clock: Clock, who_ran: WhoRan, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        self.lag = LoopLag()
        self._clock = clock
        self._who_ran = who_ran
        self._interval = interval_seconds
        self._due = self._cpu = 0.0
        self._started_at = self._started_cpu = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._noted: deque[tuple[str, float]] = deque(maxlen=_NOTED_MAX)
        # Times, and the processor time used until then.
        self._spans: deque[tuple[float, float]] = deque(maxlen=3)
        self._next_line_at = float("-inf")
        self._unsaid_count = 0

    def start(self) -> None:
        """Start to measure."""
        self._due = self._clock.monotonic() + self._interval
        self._cpu = self._started_cpu = self._clock.cpu_seconds()
        self._started_at = self._clock.monotonic()
        self._spans.append((self._clock.monotonic(), self._cpu))
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)

    def stop(self) -> None:
        """Stop measuring; idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def idle_share(self) -> float:
        """Return the fraction of the last minute in which the loop's thread was idle; 1 at first."""
        if not self._spans:
            return 1.0
        since, cpu = self._spans[0]
        seconds = self._clock.monotonic() - since
        used = self._clock.cpu_seconds() - cpu
        return min(max(1 - used / seconds, 0.0), 1.0) if seconds > 0 else 1.0

    def idle_seconds(self) -> float:
        """Return the time since `start` in which the loop's thread was idle; 0 before."""
        if not self._spans:
            return 0.0
        seconds = self._clock.monotonic() - self._started_at
        return max(seconds - (self._clock.cpu_seconds() - self._started_cpu), 0.0)

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Name the work done on the loop inside this context, in case it takes long."""
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self.did(name, self._clock.monotonic() - started)

    def did(self, name: str, seconds: float) -> None:
        """Remember work done on the loop, if it took long, until the timer runs next."""
        if seconds > _NOTED_SECONDS:
            self._noted.append((name, seconds))

    def _tick(self) -> None:
        now, cpu = self._clock.monotonic(), self._clock.cpu_seconds()
        due, cpu_before = self._due, self._cpu
        self._due, self._cpu = now + self._interval, cpu
        if now - self._spans[-1][0] >= _SPAN_SECONDS:
            self._spans.append((now, cpu))
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)
        if self.lag.note(now - due):
            self._tell(now, now - due, cpu - cpu_before)
        self._noted.clear()

    def _tell(self, now: float, late: float, cpu: float) -> None:
        if now < self._next_line_at:
            self._unsaid_count += 1
            return
        self._next_line_at = now + _LINE_SECONDS
        noted = [f"{name} for {seconds * 1000:.0f} ms" for name, seconds in self._noted]
        # A machine that is busy with other work is worth a warning only if it stays busy.
        is_own = cpu > PAUSE_SECONDS / 2 or late > _LONG_SECONDS
        _log.log(
            logging.WARNING if is_own else logging.INFO,
            "event loop paused ms=%.0f own_cpu_ms=%.0f during=%s more_pauses_unsaid=%d",
            late * 1000,
            cpu * 1000,
            ", ".join(filter(None, (*noted, self._who_ran(now - late - self._interval)))) or "?",
            self._unsaid_count,
        )
        self._unsaid_count = 0

"""The pace of a producer, as in Apache Kafka's ThroughputThrottler."""

import time
from collections.abc import Callable

_PAUSE_MIN_S = 0.002
"""Shorter pauses take longer than they should, so several of them become one."""


class Pace:
    """Limits records to `rate` a second, from now on; 0 or less is no limit.

    `before` is called before each pause, and its time is part of the pause.
    """

    def __init__(self, rate: float, before: Callable[[], None] = lambda: None) -> None:
        self._rate = rate
        self._before = before
        self._start = time.monotonic()

    def keep(self, count: int) -> None:
        """Pause until it is time for more than `count` records."""
        if self._rate <= 0:
            return
        due = self._start + count / self._rate
        if due - time.monotonic() < _PAUSE_MIN_S:
            return
        self._before()
        time.sleep(max(due - time.monotonic(), 0))

"""The time that a call may wait: `max.block.ms`."""

import time
from collections.abc import Callable

from ottla.client.errors import TimedOut


class Deadline:
    """A point in time, after which `check` raises.

    `because` adds the reason why no broker can be reached to a text, if there is one.
    """

    def __init__(self, timeout_s: float, because: Callable[[str], str] = str) -> None:
        self._because = because
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def check(self, topic: str) -> None:
        """Raise TimedOut if the time is over."""
        if time.monotonic() > self._end:
            text = (
                f"a record for topic {topic!r} found no room within {self._timeout_s:g} s "
                "(max.block.ms)"
            )
            cause = self._because(text)
            slow = f"{text}: the brokers do not take records as fast as they are sent"
            raise TimedOut(slow if cause == text else cause)

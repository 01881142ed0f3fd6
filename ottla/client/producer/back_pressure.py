"""The time that a call may wait: `max.block.ms`."""

import time

from ottla.client.errors import TimedOut


class Deadline:
    """A point in time, after which `check` raises."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def check(self, topic: str) -> None:
        """Raise TimedOut if the time is over."""
        if time.monotonic() > self._end:
            raise TimedOut(
                f"a record for topic {topic!r} found no room within {self._timeout_s:g} s "
                "(max.block.ms): the brokers do not take records as fast as they are sent"
            )

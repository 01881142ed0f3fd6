"""Brokers that did not respond in time, and how long other brokers are preferred to them.

A frozen process accepts connections and never responds: without this memory, each request that any
broker can serve waits for it again.
"""

import threading
from collections.abc import Callable, Hashable

_FIRST_S = 3.0
_MAX_S = 24.0


class Silence:
    """The silent brokers by a key of the caller; any thread may use it.

    A broker is silent for 3 seconds after a time-out, and twice as long after each further one, up
    to 24 seconds; a response ends that. `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[Hashable, tuple[float, float]] = {}
        self.timeouts = 0

    def is_silent(self, key: Hashable) -> bool:
        """Return True if a broker did not respond a moment ago."""
        until, _ = self._until.get(key, (float("-inf"), 0.0))
        return self._clock() < until

    def on_timeout(self, key: Hashable) -> None:
        """Take note that a broker did not respond in time."""
        with self._lock:
            self.timeouts += 1
            _, former_s = self._until.get(key, (0.0, 0.0))
            pause_s = min(2 * former_s or _FIRST_S, _MAX_S)
            self._until[key] = self._clock() + pause_s, pause_s

    def on_refusal(self, key: Hashable) -> None:
        """Take note that a broker cannot be reached: such a request costs no time."""
        with self._lock:
            self._until[key] = self._clock() + _FIRST_S, 0.0

    def on_response(self, key: Hashable) -> None:
        """Take note that a broker responds."""
        if key in self._until:
            with self._lock:
                self._until.pop(key, None)

"""Two measures of use: a rate over sliding windows, and a token bucket. Pure: no clock.

Times are milliseconds of any one clock. A rate starts with a whole window, as if nothing had been
used in the windows before. Follows org.apache.kafka.common.metrics.stats.Rate and TokenBucket,
org.apache.kafka.server.quota.QuotaUtils and ControllerMutationQuotaManager.
"""

from collections import deque
from typing import NamedTuple

# The throttle time of a quota of 0: the largest throttle_time_ms.
FOREVER_MS = 2**31 - 1


class QuotaWindow(NamedTuple):
    """The window of a measure: `samples` samples of `sample_ms` each, the current one included."""

    samples: int = 11
    sample_ms: int = 1000

    @property
    def whole_ms(self) -> int:
        """Milliseconds of the complete samples; a rate is never computed over fewer."""
        return (self.samples - 1) * self.sample_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = self.last_ms = start_ms
        self.value = 0.0


class Rate:
    """The use per second, compared with a limit; use above the limit is throttled."""

    __slots__ = ("_samples", "_window", "limit", "used_at_ms")

    def __init__(self, limit: float, window: QuotaWindow) -> None:
        self.limit = limit
        self.used_at_ms = 0.0
        self._window = window
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: float) -> None:
        """Count `value` as used now; a negative value undoes an earlier count."""
        self.used_at_ms = now_ms
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._window.sample_ms:
            samples.append(_Sample(now_ms))
        current = samples[-1]
        current.value += value
        current.last_ms = now_ms
        # Done here as well as in `_elapsed_ms`, because the rate may never be read.
        if len(samples) > self._window.samples + 1:
            samples.popleft()

    def per_second(self, now_ms: float) -> float:
        """Return the rate."""
        elapsed_ms = self._elapsed_ms(now_ms)
        used = sum(sample.value for sample in self._samples)
        # Windows of one sample begin with a duration of 0: no use exceeds the limit then.
        return 1000 * used / elapsed_ms if elapsed_ms > 0 else 0.0

    def throttle_ms(self, now_ms: float) -> int:
        """Return how long to wait until the rate is at the limit, if nothing more is used."""
        elapsed_ms = self._elapsed_ms(now_ms)
        rate = self.per_second(now_ms)
        if rate <= self.limit:
            return 0
        if self.limit <= 0:
            return FOREVER_MS
        return min(FOREVER_MS, round((rate - self.limit) / self.limit * elapsed_ms))

    def _elapsed_ms(self, now_ms: float) -> float:
        """Remove samples outside the window; return the time that the remaining ones cover."""
        samples, window = self._samples, self._window
        age_ms = window.samples * window.sample_ms
        while samples and now_ms - samples[0].last_ms >= age_ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0].start_ms if samples else 0.0
        missing = window.samples - 1 - int(elapsed_ms // window.sample_ms)
        return elapsed_ms + max(0, missing) * window.sample_ms


class TokenBucket:
    """Tokens that are refilled at `limit` per second, up to the capacity of all windows (KIP-599).

    One use may overdraw it; the next has to wait until the balance is no longer negative.
    """

    __slots__ = ("_tokens", "_window", "limit", "used_at_ms")

    def __init__(self, limit: float, window: QuotaWindow, now_ms: float) -> None:
        self.limit = limit
        self.used_at_ms = now_ms
        self._window = window
        self._tokens = self._burst

    @property
    def _burst(self) -> float:
        return self._window.samples * self._window.sample_ms / 1000 * self.limit

    def record(self, value: float, now_ms: float) -> None:
        """Take `value` tokens."""
        self._refill(now_ms)
        self._tokens = min(self._burst, self._tokens - value)

    def tokens(self, now_ms: float) -> float:
        """Return the balance; negative if the bucket is overdrawn."""
        self._refill(now_ms)
        return self._tokens

    def throttle_ms(self, now_ms: float) -> int:
        """Return how long to wait until the balance is no longer negative."""
        self._refill(now_ms)
        if self._tokens >= 0:
            return 0
        return FOREVER_MS if self.limit <= 0 else round(-self._tokens / self.limit * 1000)

    def _refill(self, now_ms: float) -> None:
        gained = self.limit * max(0.0, now_ms - self.used_at_ms) / 1000
        self._tokens = min(self._burst, self._tokens + gained)
        self.used_at_ms = now_ms

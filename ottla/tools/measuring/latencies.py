"""The statistics of a producer (ProducerPerformance.Stats of Apache Kafka)."""

import time
from collections.abc import Callable
from typing import NamedTuple

from ottla.tools.measuring.live import LiveLine
from ottla.tools.measuring.plot import Curve

_SAMPLES_MAX = 500_000
_LIVE_EVERY = 1000
MB = 1024.0 * 1024.0
_QUANTILES = (0.5, 0.95, 0.99, 0.999)


class LatencyWindow(NamedTuple):
    """The acknowledged records of some seconds."""

    records: int
    size_bytes: int
    total_ms: int
    maximum_ms: int
    elapsed_s: float


class Latencies:
    """Counts, bytes and latencies, of all records and of the current window of some seconds.

    `on_window` is called after each window. Neither that nor the live line is shown while
    `is_silent`. `rate` is the expected number of records per second, 0 or less if it is not known.
    """

    def __init__(
        self,
        records: int,
        window_s: float = 5.0,
        on_window: Callable[[LatencyWindow], None] = lambda window: None,
        rate: float = 0.0,
    ) -> None:
        self.is_silent = False
        # A slow producer is shown more often than every thousandth record.
        self._live_every = min(_LIVE_EVERY, max(int(rate / 10), 1)) if rate > 0 else _LIVE_EVERY
        self._on_window = on_window
        self._start = self._window_start = time.monotonic()
        self._window_s = window_s
        self._sampling = max(records // min(records, _SAMPLES_MAX), 1) if records else 1
        self._samples: list[int] = []
        self.count = self.bytes = self._total_ms = self._max_ms = 0
        self._window = [0, 0, 0, 0]
        self._live = LiveLine()

    def record(self, latency_ms: int, size: int) -> None:
        """Note an acknowledged record, and report each window."""
        if self.count % self._sampling == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self.bytes += size
        self._total_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)
        window = self._window
        window[0] += 1
        window[1] += size
        window[2] += latency_ms
        window[3] = max(window[3], latency_ms)
        now = time.monotonic()
        if now - self._window_start >= self._window_s:
            if not self.is_silent:
                self._live.clear()
                records, size_bytes, total_ms, maximum_ms = window
                elapsed_s = now - self._window_start
                self._on_window(LatencyWindow(records, size_bytes, total_ms, maximum_ms, elapsed_s))
            self._window = [0, 0, 0, 0]
            self._window_start = now
        elif self.count % self._live_every == 0 and not self.is_silent:
            self._live.show(self.count)

    def summary(self) -> dict[str, float]:
        """Return the totals."""
        self._live.clear()
        elapsed_s = max(time.monotonic() - self._start, 1e-3)
        ordered = sorted(self._samples) or [0]
        quantiles = {
            f"p{100 * quantile:g}": ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]
            for quantile in _QUANTILES
        }
        return {
            "records": self.count,
            "records_per_second": self.count / elapsed_s,
            "mb_per_second": self.bytes / elapsed_s / MB,
            "average_ms": self._total_ms / max(self.count, 1),
            "maximum_ms": float(self._max_ms),
            **quantiles,
        }

    def curve(self) -> Curve:
        """Return the latencies in the order of the records, for `--plot`."""
        points = [(at * self._sampling, ms) for at, ms in enumerate(self._samples, 1)]
        return Curve(f"Latency of {self.count} records", "record", "ms", points)

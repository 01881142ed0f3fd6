"""The statistics of `kafka-producer-perf-test` (ProducerPerformance.Stats)."""

import time
from collections.abc import Mapping

from ottla.tools.scripts.perf.live import LiveLine
from ottla.tools.scripts.perf.plot import Curve
from ottla.tools.scripts.printing import out

_SAMPLES_MAX = 500_000
_LIVE_EVERY = 1000
_MB = 1024.0 * 1024.0
_QUANTILES = (0.5, 0.95, 0.99, 0.999)


class Latencies:
    """Counts, bytes and latencies, of all records and of the current window of some seconds.

    `state` follows the number of records in the lines. No window is printed while `is_silent`.
    """

    def __init__(self, records: int, window_s: float = 5.0, state: str = "") -> None:
        self._state = state
        self.is_silent = False
        self._start = self._window_start = time.monotonic()
        self._window_s = window_s
        self._sampling = max(records // min(records, _SAMPLES_MAX), 1) if records else 1
        self._samples: list[int] = []
        self.count = self.bytes = self._total_ms = self._max_ms = 0
        self._window = [0, 0, 0, 0]
        self._live = LiveLine()

    def record(self, latency_ms: int, size: int) -> None:
        """Note an acknowledged record, and print each window."""
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
                self._print_window(now - self._window_start)
            self._window = [0, 0, 0, 0]
            self._window_start = now
        elif self.count % _LIVE_EVERY == 0 and not self.is_silent:
            self._live.show(self.count)

    def _print_window(self, elapsed_s: float) -> None:
        self._live.clear()
        count, size, total_ms, max_ms = self._window
        out(
            f"{count}{self._state} records sent, {count / elapsed_s:.1f} records/sec "
            f"({size / elapsed_s / _MB:.2f} MB/sec), {total_ms / max(count, 1):.1f} ms avg latency, "
            f"{float(max_ms):.1f} ms max latency."
        )

    def summary(self) -> dict[str, float]:
        """Return the totals, for JSON and for the last line."""
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
            "mb_per_second": self.bytes / elapsed_s / _MB,
            "average_ms": self._total_ms / max(self.count, 1),
            "maximum_ms": float(self._max_ms),
            **quantiles,
        }

    def print_total(self, facts: Mapping[str, float]) -> None:
        """Print the last line, from a summary."""
        out(
            f"{self.count}{self._state} records sent, {facts['records_per_second']:.6f} records/sec "
            f"({facts['mb_per_second']:.2f} MB/sec), {facts['average_ms']:.2f} ms avg latency, "
            f"{facts['maximum_ms']:.2f} ms max latency, {facts['p50']} ms 50th, "
            f"{facts['p95']} ms 95th, {facts['p99']} ms 99th, {facts['p99.9']} ms 99.9th."
        )

    def curve(self) -> Curve:
        """Return the latencies in the order of the records, for `--plot`."""
        points = [(at * self._sampling, ms) for at, ms in enumerate(self._samples, 1)]
        return Curve(f"Latency of {self.count} records", "record", "ms", points)

"""Durations and sizes as counts in buckets, from which quantiles are computed.

An observation increments one of 300 counters. The quantiles cover the last minutes: two
windows alternate, so that old values are dropped. Values are integers of any unit.
"""

from collections.abc import Iterator, Sequence

# Eight buckets for each power of two: the error of a quantile is at most 6 %.
_STEP_BITS = 3
_STEPS = 1 << _STEP_BITS
_VALUE_MAX = 2**40 - 1
_BUCKETS = (_VALUE_MAX.bit_length() - _STEP_BITS + 1) * _STEPS
WINDOW_SECONDS = 300.0


def bucket_of(value: int) -> int:
    """Return the number of the bucket for a value."""
    if value < _STEPS:
        return max(value, 0)
    shift = min(value, _VALUE_MAX).bit_length() - _STEP_BITS - 1
    return (shift << _STEP_BITS) + (min(value, _VALUE_MAX) >> shift)


def middle_of(bucket: int) -> float:
    """Return the value in the middle of a bucket."""
    if bucket < 2 * _STEPS:
        return float(bucket)
    shift = (bucket >> _STEP_BITS) - 1
    lowest = (_STEPS + (bucket & (_STEPS - 1))) << shift
    return lowest + ((1 << shift) - 1) / 2


def quantiles(counts: Sequence[int], shares: tuple[float, ...]) -> Iterator[float]:
    """Return the quantiles for these shares (ascending); NaN if there are no values."""
    total = sum(counts)
    bucket, below = -1, 0
    for share in shares:
        while bucket < len(counts) - 1 and (below < share * total or not below):
            bucket += 1
            below += counts[bucket]
        yield middle_of(bucket) if total else float("nan")


class Histogram:
    """Counts of values; `count` and `sum` cover all values, quantiles the recent ones.

    The weight of a value that was measured as a sample of many is their number.
    """

    __slots__ = ("_begun_at", "_counts", "_former", "count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self._counts = [0] * _BUCKETS
        self._former: list[int] = []
        self._begun_at = 0.0

    def observe(self, value: int, weight: int = 1) -> None:
        """Count a value `weight` times."""
        self._counts[bucket_of(value)] += weight
        self.count += weight
        self.sum += value * weight

    def quantiles(self, shares: tuple[float, ...], now: float) -> Iterator[float]:
        """Return the quantiles of the recent values for these shares (ascending)."""
        return quantiles(self.recent(now), shares)

    def recent(self, now: float) -> list[int]:
        """Return the counts of the last minutes, by bucket; `now` is a time in seconds."""
        self._turn(now)
        if not self._former:
            return self._counts
        return [sum(pair) for pair in zip(self._counts, self._former, strict=True)]

    def _turn(self, now: float) -> None:
        """Start a new window if this one is old enough."""
        if now - self._begun_at < WINDOW_SECONDS:
            return
        is_recent = now - self._begun_at < 2 * WINDOW_SECONDS
        self._former = self._counts if is_recent or not self._begun_at else []
        self._counts = [0] * _BUCKETS
        self._begun_at = now

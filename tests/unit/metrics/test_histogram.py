"""Quantiles from buckets are close to the real ones, and old observations expire."""

import math
import random

import pytest

from ottla.metrics.histogram import WINDOW_SECONDS, Histogram, bucket_of, middle_of


def test_buckets_are_contiguous() -> None:
    """A larger value is never in a smaller bucket, and each bucket is reachable."""
    numbers = [bucket_of(value) for value in range(5000)]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(max(numbers) + 1))


@pytest.mark.parametrize("value", [0, 1, 7, 8, 15, 16, 1000, 123_456_789, 2**40 - 1])
def test_bucket_is_within_six_percent_of_its_values(value: int) -> None:
    """Each power of two has eight buckets."""
    assert middle_of(bucket_of(value)) == pytest.approx(value, rel=0.0625, abs=0.5)


@pytest.mark.parametrize("value", [-5, 2**50])
def test_values_beyond_the_range_are_counted_at_its_ends(value: int) -> None:
    """The clock may not advance, or a request may take two weeks."""
    histogram = Histogram()
    histogram.observe(value)
    assert histogram.count == 1


def test_quantiles_are_accurate() -> None:
    """The distribution is skewed, as durations are."""
    chance = random.Random(7)
    values = sorted(int(chance.expovariate(1 / 5000)) for _ in range(20_000))
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    shares = (0.5, 0.95, 0.99, 0.999)
    quantiles = list(histogram.quantiles(shares, 1.0))
    expected = [values[int(share * len(values))] for share in shares]
    assert quantiles == [pytest.approx(value, rel=0.07) for value in expected]
    assert (histogram.count, histogram.sum) == (len(values), sum(values))


def test_weighted_sample_counts_several_times() -> None:
    """A weight counts as that many observations."""
    one, many = Histogram(), Histogram()
    one.observe(100, 16)
    one.observe(9)
    for value in [100] * 16 + [9]:
        many.observe(value)
    assert (one.count, one.sum) == (many.count, many.sum)
    assert list(one.quantiles((0.5, 0.99), 1.0)) == list(many.quantiles((0.5, 0.99), 1.0))


def test_empty_histogram_has_no_quantile() -> None:
    """Prometheus reads NaN as no value."""
    (quantile,) = Histogram().quantiles((0.5,), 1.0)
    assert math.isnan(quantile)


def test_old_observations_expire() -> None:
    """Observations are kept for one window at least and two at most."""
    histogram = Histogram()
    histogram.observe(1000)
    assert list(histogram.quantiles((0.5,), 1.0)) == [pytest.approx(1000, rel=0.07)]
    now = 1.0 + WINDOW_SECONDS
    assert list(histogram.quantiles((0.5,), now)) == [pytest.approx(1000, rel=0.07)]
    histogram.observe(8)
    histogram.observe(8)
    assert list(histogram.quantiles((0.5,), now + WINDOW_SECONDS)) == [8.0]
    (quantile,) = histogram.quantiles((0.5,), now + 5 * WINDOW_SECONDS)
    assert math.isnan(quantile)
    assert histogram.count == 3

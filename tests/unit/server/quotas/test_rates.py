"""Rates and token buckets, compared with values calculated by hand from Kafka's formulas."""

import pytest

from ottla.server.quotas.rates import FOREVER_MS, QuotaWindow, Rate, TokenBucket

SECONDS = QuotaWindow(samples=11, sample_ms=1000)


def test_new_rate_allows_ten_seconds_at_once() -> None:
    """Earlier windows count as empty, so ten seconds' worth at once does not exceed the limit."""
    rate = Rate(100, SECONDS)
    rate.record(1000, 5_000)
    assert rate.per_second(5_000) == pytest.approx(100)
    assert rate.throttle_ms(5_000) == 0


def test_excess_use_is_throttled() -> None:
    """The throttle time is (rate - limit) / limit × window: 1500 in ten seconds at 100/s take 5 s.

    As in Kafka, a whole sample of time that has passed replaces an empty one before.
    """
    rate = Rate(100, SECONDS)
    rate.record(1500, 0)
    assert [rate.throttle_ms(now_ms) for now_ms in (0, 250, 2_500, 9_999)] == [
        5_000, 4_750, 4_500, 4_001,
    ]  # fmt: skip
    assert rate.throttle_ms(11_000) == 0


def test_samples_without_events_expire() -> None:
    """A sample expires eleven seconds after its last event."""
    rate = Rate(100, SECONDS)
    rate.record(1500, 0)
    rate.record(10, 900)
    assert rate.per_second(11_800) == pytest.approx(1510 / 11.8)
    assert rate.per_second(11_900) == 0


def test_a_steady_use_has_its_rate() -> None:
    """90 a second for a minute is a rate of 90; a sample's first event counts from its own time."""
    rate = Rate(100, SECONDS)
    for second in range(60):
        rate.record(90, second * 1000)
        assert rate.throttle_ms(second * 1000) == 0
    assert rate.per_second(59_000) == pytest.approx(99)
    assert rate.per_second(59_999) == pytest.approx(90, rel=0.01)


def test_undone_use_does_not_count() -> None:
    """A throttled fetch returns no records, so they do not count."""
    rate = Rate(100, SECONDS)
    rate.record(5000, 0)
    rate.record(-5000, 0)
    assert rate.per_second(0) == 0


def test_new_limit_applies_to_earlier_use() -> None:
    """Changing a quota keeps the samples."""
    rate = Rate(100, SECONDS)
    rate.record(1000, 0)
    rate.limit = 50
    assert rate.throttle_ms(0) == 10_000


@pytest.mark.parametrize("limit", [0.0, -1.0])
def test_quota_of_zero_throttles_without_end(limit: float) -> None:
    """Kafka 3.9 accepts a quota of 0, which throttles without end."""
    rate = Rate(limit, SECONDS)
    rate.record(1, 0)
    assert rate.throttle_ms(0) == FOREVER_MS
    bucket = TokenBucket(limit, SECONDS, 0)
    bucket.record(1, 0)
    assert bucket.throttle_ms(0) == FOREVER_MS


def test_one_sample_never_divides_by_zero() -> None:
    """With quota.window.num=1 there is no whole window."""
    rate = Rate(100, QuotaWindow(samples=1, sample_ms=1000))
    rate.record(500, 0)
    assert rate.throttle_ms(0) == 0
    assert rate.throttle_ms(500) == 4_500


@pytest.mark.parametrize("seed", range(4))
def test_client_that_waits_keeps_the_limit(seed: int) -> None:
    """For random request sizes, the rate over a minute exceeds the limit by at most a tenth."""
    sizes = [100 * (1 + (seed * 7 + number * 13) % 29) for number in range(5_000)]
    rate, now_ms, used = Rate(1000, SECONDS), 0.0, 0.0
    for size in sizes:
        rate.record(size, now_ms)
        used += size
        now_ms += 1 + rate.throttle_ms(now_ms)
        if now_ms > 60_000:
            break
    # The limit plus ten seconds' worth at the start.
    assert used == pytest.approx(1000 * (now_ms / 1000 + 10), rel=0.1)


def test_a_bucket_begins_full_and_may_be_overdrawn_once() -> None:
    """In Kafka's example of 5 a second and 100 samples of a second, a burst of 560 waits 12 s."""
    bucket = TokenBucket(5, QuotaWindow(samples=100, sample_ms=1000), 0)
    bucket.record(560, 0)
    assert bucket.throttle_ms(0) == 12_000
    assert bucket.throttle_ms(6_000) == 6_000
    assert bucket.throttle_ms(12_000) == 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    """An hour without use saves no more than the windows' worth."""
    bucket = TokenBucket(1, SECONDS, 0)
    bucket.record(12, 3_600_000)
    assert bucket.throttle_ms(3_600_000) == 1_000

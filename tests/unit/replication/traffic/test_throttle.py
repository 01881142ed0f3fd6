"""The rate of throttled replication, compared with its limit (KIP-73)."""

import math

import pytest

from ottla.replication.traffic.throttle import (
    ReplicationQuotaWindow,
    ReplicationTraffic,
    Throttle,
    names_replica,
)

WINDOW = ReplicationQuotaWindow(samples=11, sample_seconds=1.0)


def throttle(limit: float) -> Throttle:
    return Throttle(lambda: limit, WINDOW)


def test_bytes_of_the_first_second_count_as_the_rate_of_a_second() -> None:
    """The bytes of the first second are divided by a whole second, so that a first response does
    not exceed the limit.
    """
    measured = throttle(1000)
    measured.record(1000, 5.0)
    assert measured.bytes_per_second(5.0) == 1000
    assert not measured.is_exceeded(5.0)
    measured.record(1, 5.1)
    assert measured.is_exceeded(5.1)


def test_rate_falls_to_the_limit_after_the_time_that_is_left() -> None:
    """A follower that waits for that time may fetch again."""
    measured = throttle(1000)
    measured.record(3000, 0.0)
    left = measured.seconds_left(1.0)
    assert left == pytest.approx(2.0)
    assert measured.is_exceeded(1.0 + left - 0.01)
    assert not measured.is_exceeded(1.0 + left + 0.01)
    assert measured.seconds_left(1.0 + left + 0.01) == 0


def test_bytes_are_forgotten_after_the_window() -> None:
    """The rate covers the last samples only."""
    measured = throttle(1000)
    measured.record(1_000_000, 0.0)
    assert measured.seconds_left(1.0) == pytest.approx(10.0)
    assert measured.is_exceeded(10.9)
    assert not measured.is_exceeded(11.0)
    assert measured.bytes_per_second(11.0) == 0


def test_limit_of_zero_stops_throttled_replication() -> None:
    """Nothing is within a limit of 0 until all bytes are forgotten."""
    measured = throttle(0)
    assert not measured.is_exceeded(0.0)
    measured.record(1, 0.0)
    assert measured.is_exceeded(5.0)
    assert measured.seconds_left(5.0) == pytest.approx(6.0)


def test_changed_limit_applies_at_once() -> None:
    """The limit is a dynamic option."""
    limit = [10.0]
    measured = Throttle(lambda: limit[0], WINDOW)
    measured.record(100, 0.0)
    assert measured.is_exceeded(1.0)
    limit[0] = math.inf
    assert not measured.is_exceeded(1.0)


@pytest.mark.parametrize("rate", [500, 1000, 4000])
def test_transfer_that_waits_while_the_limit_is_exceeded_keeps_to_it(rate: int) -> None:
    """Over a minute the rate is the limit, give or take one response."""
    measured = throttle(rate)
    now, sent = 0.0, 0
    while now < 60:
        if measured.is_exceeded(now):
            now += measured.seconds_left(now) + 0.001
        else:
            measured.record(700, now)
            sent += 700
            now += 0.01
    assert sent / 60 == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize(
    ("items", "expected"),
    [([], False), (["*"], True), (["3:7"], True), (["3:8", "7:3"], False), (["1:7", "3:7"], True)],
)
def test_topic_names_its_throttled_replicas(items: list[str], expected: bool) -> None:
    """A replica is partition:broker; * is every replica of the topic."""
    assert names_replica(items, 3, 7) is expected


def test_only_throttled_bytes_count_for_the_limit() -> None:
    """All bytes of replication are counted for metrics."""
    traffic = ReplicationTraffic(throttle(10), throttle(10))
    traffic.sent(500, 0.0, throttled=False, added=True)
    traffic.received(300, 0.0, throttled=False, added=False)
    assert not traffic.to_followers.is_exceeded(1.0)
    assert not traffic.from_leaders.is_exceeded(1.0)
    traffic.sent(50, 0.0, throttled=True, added=False)
    traffic.received(30, 0.0, throttled=True, added=True)
    assert traffic.to_followers.bytes_per_second(1.0) == 50
    assert traffic.from_leaders.bytes_per_second(1.0) == 30
    assert (traffic.sent_bytes, traffic.reassigned_sent_bytes) == (550, 500)
    assert (traffic.received_bytes, traffic.reassigned_received_bytes) == (330, 30)

"""Points of a sample, rates and forecasts: pure functions."""

import pytest

from ottla.console.history.points import (
    LEVELS,
    Kind,
    Point,
    Subject,
    forecast_of,
    points_of,
    rated,
)
from ottla.console.model.overview import Sample


def sample_of(at_ms: int, ends: dict[tuple[str, int], int], **lags: int) -> Sample:
    """Return a sample with end offsets and the lags of groups, whose positions are 1000."""
    return Sample(
        cluster="live",
        at_ms=at_ms,
        controller_id=1,
        brokers=(1,),
        partitions={},
        end_offsets=ends,
        sizes_bytes={key: end * 10 for key, end in ends.items()},
        disk_total_bytes={},
        disk_usable_bytes={},
        group_states={},
        group_lags=lags,
        group_lags_s={name: lag / 2 for name, lag in lags.items()},
        group_positions=dict.fromkeys(lags, 1000),
    )


def test_a_sample_has_points_of_the_cluster_its_groups_and_its_topics() -> None:
    """Partitions are added up; topics follow by the number of their records."""
    sample = sample_of(5_000, {("a", 0): 1, ("b", 0): 2, ("b", 1): 3}, billing=40)
    assert list(points_of(sample)) == [
        (Subject(Kind.CLUSTER, ""), Point(5, 6, 60)),
        (Subject(Kind.GROUP, "billing"), Point(5, 1000, None, 40, 20.0)),
        (Subject(Kind.TOPIC, "b"), Point(5, 5, 50)),
        (Subject(Kind.TOPIC, "a"), Point(5, 1, 10)),
    ]


def test_rates_have_no_value_after_a_gap_or_a_reset() -> None:
    """A rate needs a point before it, not too long ago, with a smaller number."""
    points = [Point(0, 0), Point(10, 50), Point(20, 20), Point(30, 30), Point(90, 900)]
    rates = [point.records_per_s for point in rated(points, LEVELS[0].step_s)]
    assert rates == [None, 5.0, None, 1.0, None]


def test_arrivals_are_the_growth_of_positions_and_lag() -> None:
    """A group that reads 3/s while its lag grows by 2/s has 5 arrivals a second."""
    points = [Point(0, 100, None, 10), Point(10, 130, None, 30)]
    last = rated(points, 10)[-1]
    assert (last.records_per_s, last.arrivals_per_s) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("change", "verdict", "seconds"),
    [(-10, "catching-up", 50), (5, "falling-behind", None), (0, "steady", None)],
)
def test_forecast_by_the_lag_of_the_last_minutes(
    change: int, verdict: str, seconds: int | None
) -> None:
    """A lag that shrinks by 10 each second from 1100 to 500 is gone in 50 seconds; older points do
    not count.
    """
    old = [Point(at_s, 0, None, 9_000_000) for at_s in range(0, 300, 10)]
    recent = [Point(2000 + n, 0, None, 1100 + change * n) for n in range(0, 61, 10)]
    forecast = forecast_of([*old, *recent], 2_060_000)
    assert forecast.verdict == verdict
    if seconds is None:
        assert forecast.caught_up_at_ms is None
    else:
        assert forecast.caught_up_at_ms == 2_060_000 + seconds * 1000


def test_no_forecast_without_recent_points() -> None:
    """A console that has just started does not guess."""
    assert forecast_of([], 0).verdict == "unknown"
    assert forecast_of([Point(0, 0, None, 5)] * 9, 9_000_000).verdict == "unknown"

"""Points of histories: what a sample says about each topic and group, and the rates. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.console.model.groups import Forecast, LagPoint, forecast_catch_up
from ottla.console.model.overview import Sample
from ottla.operations.survey.metadata import Key

# A forecast looks back so far: long enough for batches, short enough for a change of the load.
FORECAST_S = 600
# A longer silence than so many steps is a gap: the console or the cluster was down.
_GAP_STEPS = 3


class Level(NamedTuple):
    """A resolution: one point in `step_s` seconds, and at most `capacity` points."""

    step_s: int
    capacity: int


LEVELS = (Level(10, 360), Level(60, 1440), Level(600, 1008))
"""An hour by 10 seconds, a day by minutes, and 7 days by 10 minutes."""


class Kind(Enum):
    """The subject of a series; the series of a whole cluster has an empty name."""

    CLUSTER = "cluster"
    TOPIC = "topic"
    GROUP = "group"


class Period(Enum):
    """The period that a reader wants, up to now."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def level(self) -> int:
        """The index of the resolution of the period."""
        return list(Period).index(self)


class Subject(NamedTuple):
    """The subject of a series."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Point:
    """A measurement; None if unknown.

    `records` is the sum of the end offsets of a topic or cluster, or of the offsets that a group
    has committed. `size_bytes` is the size of the leaders' logs. A point of a lower resolution has
    the largest values of its time.
    """

    at_s: int
    records: int | None
    size_bytes: int | None = None
    lag: int | None = None
    lag_s: float | None = None


@dataclass(frozen=True, slots=True)
class RatedPoint:
    """A measurement with rates since the point before; None if unknown.

    `records_per_s` is the rate of appends to a topic, or of commits of a group; `arrivals_per_s`
    the rate of appends to the partitions that a group has committed.
    """

    at_ms: int
    records: int | None
    records_per_s: float | None
    arrivals_per_s: float | None
    size_bytes: int | None
    lag: int | None
    lag_s: float | None


def points_of(sample: Sample) -> Iterator[tuple[Subject, Point]]:
    """Yield the points of a sample: the cluster, its groups, and its topics, busiest first."""
    at_s = sample.at_ms // 1000
    records = _by_topic(sample.end_offsets)
    sizes = _by_topic(sample.sizes_bytes)
    yield (
        Subject(Kind.CLUSTER, ""),
        Point(at_s, sum(records.values()), sum(sizes.values()) if sizes else None),
    )
    for group, lag in sorted(sample.group_lags.items()):
        position = sample.group_positions.get(group)
        seconds = sample.group_lags_s.get(group)
        yield Subject(Kind.GROUP, group), Point(at_s, position, None, lag, seconds)
    for topic in sorted(records, key=lambda name: (-records[name], name)):
        yield Subject(Kind.TOPIC, topic), Point(at_s, records[topic], sizes.get(topic))


def rated(points: Sequence[Point], step_s: int) -> list[RatedPoint]:
    """Return points with their rates.

    There is no rate after a gap, or if a number has shrunk: the topic was created again, or offsets
    were reset.
    """
    result = []
    before: Point | None = None
    for point in points:
        rate = arrivals = None
        if before is not None and 0 < point.at_s - before.at_s <= _GAP_STEPS * step_s:
            seconds = point.at_s - before.at_s
            rate = _rate(before.records, point.records, seconds)
            arrivals = _rate(_end(before), _end(point), seconds)
        result.append(
            RatedPoint(
                point.at_s * 1000,
                point.records,
                rate,
                arrivals,
                point.size_bytes,
                point.lag,
                point.lag_s,
            )
        )
        before = point
    return result


def forecast_of(points: Sequence[Point], now_ms: int) -> Forecast:
    """Return when a group will have caught up, by its lag in the last 10 minutes."""
    oldest_s = now_ms / 1000 - FORECAST_S
    recent = [
        LagPoint(point.at_s * 1000, point.lag)
        for point in points
        if point.lag is not None and point.at_s >= oldest_s
    ]
    return forecast_catch_up(recent, now_ms=now_ms)


def _by_topic(numbers: Mapping[Key, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for (topic, _), number in numbers.items():
        totals[topic] = totals.get(topic, 0) + number
    return totals


def _end(point: Point) -> int | None:
    return None if point.records is None or point.lag is None else point.records + point.lag


def _rate(before: int | None, after: int | None, seconds: int) -> float | None:
    if before is None or after is None or after < before:
        return None
    return (after - before) / seconds

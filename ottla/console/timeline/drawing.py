"""The drawing of a timeline: lanes of bars over an axis of time, as positions. Pure.

A lane has a bar for each span, coloured by the leader and labelled with its id, so that colour
alone says nothing. A thin bar below it is the ISR.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.console.timeline.spans import NodeSpan, PartitionSpan, Period

WIDTH, LABEL_WIDTH, LANE_HEIGHT, AXIS_HEIGHT = 980, 150, 26, 22
COLOURS = 8
_TICKS_MAX = 8
_CHARACTER = 8
_STEPS_S = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800)


class Bar(NamedTuple):
    """A bar; `kind` is a class of the style sheet, `label` is empty if it does not fit."""

    x: float
    width: float
    kind: str
    label: str
    start_ms: int
    end_ms: int
    node_id: int
    epoch: int | None


class Lane(NamedTuple):
    """A row of the drawing; `isr` are the bars below `bars`."""

    name: str
    y: int
    bars: tuple[Bar, ...]
    isr: tuple[Bar, ...]


class Tick(NamedTuple):
    """A mark of the axis."""

    x: float
    at_ms: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lanes, gaps in which nothing was sampled, and the axis."""

    width: int
    height: int
    lanes: tuple[Lane, ...]
    gaps: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """The period that is drawn."""

    start_ms: int
    end_ms: int

    def x(self, at_ms: int) -> float:
        """Return the position of a time, at the edge for one outside of the period."""
        length = max(1, self.end_ms - self.start_ms)
        part = (min(max(at_ms, self.start_ms), self.end_ms) - self.start_ms) / length
        return round(LABEL_WIDTH + part * (WIDTH - LABEL_WIDTH), 1)

    def bar(
        self,
        start_ms: int,
        end_ms: int | None,
        kind: str,
        node_id: int = -1,
        epoch: int | None = None,
    ) -> Bar:
        """Return the bar of a span; one that lasts ends at the edge."""
        end_ms = self.end_ms if end_ms is None else end_ms
        left = self.x(start_ms)
        # A short span must stay visible.
        width = max(1.5, round(self.x(end_ms) - left, 1))
        label = str(node_id) if node_id >= 0 else ""
        shown = label if width >= _CHARACTER * len(label) + 4 else ""
        return Bar(left, width, kind, shown, start_ms, end_ms, node_id, epoch)


def draw_partitions(
    spans: Iterable[PartitionSpan], periods: Sequence[Period], scale: Scale
) -> Drawing:
    """Return a lane for each partition, by name and number."""
    by_key: dict[tuple[str, int], list[PartitionSpan]] = {}
    for span in spans:
        by_key.setdefault((span.topic, span.partition), []).append(span)
    lanes = [
        Lane(
            str(key[1]),
            index * LANE_HEIGHT,
            tuple(
                scale.bar(
                    row.start_ms, row.end_ms, _leader(row.leader), row.leader, row.leader_epoch
                )
                for row in rows
            ),
            tuple(scale.bar(row.start_ms, row.end_ms, _isr(row)) for row in rows),
        )
        for index, (key, rows) in enumerate(sorted(by_key.items()))
    ]
    return _drawing(lanes, periods, scale)


def draw_nodes(
    controllers: Sequence[NodeSpan],
    brokers: Sequence[NodeSpan],
    periods: Sequence[Period],
    scale: Scale,
    label: str,
) -> Drawing:
    """Return a lane for the controller, named `label`, and one for each broker."""
    lanes = [Lane(label, 0, tuple(_node_bar(row, scale) for row in controllers), ())]
    for index, node in enumerate(sorted({row.node_id for row in brokers}), 1):
        bars = tuple(_node_bar(row, scale) for row in brokers if row.node_id == node)
        lanes.append(Lane(str(node), index * LANE_HEIGHT, bars, ()))
    return _drawing(lanes, periods, scale)


def gaps_between(periods: Sequence[Period], scale: Scale) -> list[tuple[int, int]]:
    """Return the parts of the drawn period in which nothing was sampled, as (start, end)."""
    gaps, at_ms = [], scale.start_ms
    for period in periods:
        if period.start_ms > at_ms:
            gaps.append((at_ms, min(period.start_ms, scale.end_ms)))
        at_ms = max(at_ms, period.end_ms)
    # The last sample is some seconds old.
    if not periods or scale.end_ms - at_ms > _NEWEST_MS:
        gaps.append((at_ms, scale.end_ms))
    return [(start, end) for start, end in gaps if start < end]


_NEWEST_MS = 60_000


def ticks_of(scale: Scale) -> list[Tick]:
    """Return marks at round times of UTC, at most one in each eighth of the axis."""
    length_s = (scale.end_ms - scale.start_ms) / 1000
    step_s = next((step for step in _STEPS_S if length_s / step <= _TICKS_MAX), _STEPS_S[-1])
    step_ms = step_s * 1000
    first = -(-scale.start_ms // step_ms) * step_ms
    return [Tick(scale.x(at), at) for at in range(first, scale.end_ms + 1, step_ms)]


def _drawing(lanes: Sequence[Lane], periods: Sequence[Period], scale: Scale) -> Drawing:
    gaps = tuple(scale.bar(start, end, "gap") for start, end in gaps_between(periods, scale))
    height = len(lanes) * LANE_HEIGHT
    return Drawing(WIDTH, height + AXIS_HEIGHT, tuple(lanes), gaps, tuple(ticks_of(scale)))


def _node_bar(row: NodeSpan, scale: Scale) -> Bar:
    return scale.bar(row.start_ms, row.end_ms, _leader(row.node_id), row.node_id, row.epoch)


def _leader(node_id: int) -> str:
    return "none" if node_id < 0 else f"node{node_id % COLOURS}"


def _isr(row: PartitionSpan) -> str:
    if row.leader < 0:
        return "offline"
    return "shrunk" if row.missing else "complete"

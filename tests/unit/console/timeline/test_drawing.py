"""Positions of the drawn timeline."""

from ottla.console.timeline.drawing import (
    LABEL_WIDTH,
    LANE_HEIGHT,
    WIDTH,
    Scale,
    draw_nodes,
    draw_partitions,
    gaps_between,
    ticks_of,
)
from ottla.console.timeline.spans import NodeSpan, PartitionSpan, Period

SCALE = Scale(0, 600_000)
MIDDLE = LABEL_WIDTH + (WIDTH - LABEL_WIDTH) / 2


def span(partition: int, start_ms: int, end_ms: int | None, leader: int = 1) -> PartitionSpan:
    """Return a span of the topic orders whose replica 2 is missing if it has leader 1."""
    isr = (1,) if leader == 1 else (1, 2)
    return PartitionSpan("orders", partition, start_ms, end_ms, leader, 3, isr, (1, 2), 0)


def test_bars_meet_where_the_leader_changed() -> None:
    """Two spans of half the period share the lane; the last one ends at the edge."""
    spans = [span(0, 0, 300_000), span(0, 300_000, None, 2), span(1, 0, None, -1)]
    drawing = draw_partitions(spans, [Period(0, 600_000)], SCALE)
    first, second = drawing.lanes
    assert [(bar.x, bar.x + bar.width, bar.label) for bar in first.bars] == [
        (LABEL_WIDTH, MIDDLE, "1"),
        (MIDDLE, WIDTH, "2"),
    ]
    assert [bar.kind for bar in first.isr] == ["shrunk", "complete"]
    assert (second.y, second.bars[0].kind, second.isr[0].kind) == (LANE_HEIGHT, "none", "offline")
    assert drawing.gaps == ()


def test_short_spans_are_visible_without_a_label() -> None:
    """A failover of a second in a week has a bar, whose text does not overlap the next."""
    week = Scale(0, 7 * 24 * 3600 * 1000)
    bar = week.bar(1000, 2000, "node1", 1)
    assert (bar.width, bar.label) == (1.5, "")


def test_spans_that_begin_before_the_period_are_cut() -> None:
    """The bar begins at the edge, and its title has the true times."""
    bar = Scale(100_000, 200_000).bar(0, 150_000, "node1", 1)
    assert (bar.x, bar.start_ms) == (LABEL_WIDTH, 0)


def test_the_controller_is_the_first_lane() -> None:
    """Each broker has one lane, also if it was registered twice."""
    brokers = [NodeSpan(2, 0, 100_000, None), NodeSpan(2, 200_000, None, None)]
    drawing = draw_nodes([NodeSpan(2, 0, None, 4)], brokers, [Period(0, 600_000)], SCALE, "boss")
    assert [(lane.name, len(lane.bars)) for lane in drawing.lanes] == [("boss", 1), ("2", 2)]


def test_gaps_are_what_no_period_covers() -> None:
    """The time before the first sample, between periods, and since the last one is a gap."""
    periods = [Period(100_000, 200_000), Period(300_000, 400_000)]
    gaps = [(0, 100_000), (200_000, 300_000), (400_000, 600_000)]
    assert gaps_between(periods, SCALE) == gaps
    assert gaps_between([], SCALE) == [(0, 600_000)]
    assert gaps_between([Period(0, 590_000)], SCALE) == []


def test_ticks_are_at_round_times() -> None:
    """Ten minutes have a mark at each second minute or fewer, all within the drawing."""
    ticks = ticks_of(Scale(61_000, 661_000))
    assert [tick.at_ms for tick in ticks] == [300_000, 600_000]
    assert all(LABEL_WIDTH <= tick.x <= WIDTH for tick in ticks)
    assert len(ticks_of(Scale(0, 7 * 24 * 3600 * 1000))) <= 8

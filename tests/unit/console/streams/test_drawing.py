"""Positions of the boxes of a topology."""

from itertools import pairwise

from ottla.console.streams.describe_text import NodeKind, Topology, TopologyNode, parse_topology
from ottla.console.streams.drawing import BOX_HEIGHT, BOX_WIDTH, draw_readers, draw_topology
from tests.unit.console.streams.test_describe_text import WORDS


def test_boxes_are_right_of_what_leads_to_them_and_do_not_overlap() -> None:
    """Each line goes to the right, and each box has a place of its own within the drawing."""
    drawing = draw_topology(parse_topology(WORDS), {"words": "lag 7"})
    assert all(line.x1 < line.x2 for line in drawing.lines)
    positions = [(box.x, box.y) for box in drawing.boxes]
    assert len(set(positions)) == len(positions)
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - BOX_WIDTH
        assert 0 <= box.y <= drawing.height - BOX_HEIGHT
    columns: dict[float, list[float]] = {}
    for x, y in positions:
        columns.setdefault(x, []).append(y)
    for rows in columns.values():
        ordered = sorted(rows)
        assert all(b - a >= BOX_HEIGHT for a, b in pairwise(ordered))
    assert [box.text for box in drawing.boxes if box.note] == ["words"]
    # The topic between two sub-topologies has one box.
    assert [box.text for box in drawing.boxes].count("by-key-repartition") == 1
    assert sum(line.is_dashed for line in drawing.lines) == 2


def test_an_application_that_reads_what_it_writes_is_drawn() -> None:
    """A loop has no left end: it is cut, and every box is placed."""
    source = TopologyNode("in", NodeKind.SOURCE, 0, ("out",), ("loop",))
    sink = TopologyNode("out", NodeKind.SINK, 0, (), ("loop",))
    drawing = draw_topology(Topology((source, sink)), {})
    assert len(drawing.boxes) == 3
    assert len({(box.x, box.y) for box in drawing.boxes}) == 3


def test_nothing_is_an_empty_drawing() -> None:
    """An application without topics does not fail."""
    assert draw_topology(Topology(()), {}).boxes == ()


def test_members_are_drawn_beside_the_topics_that_they_read() -> None:
    """One line for each topic of a member, whose note has the partitions; an idle member has no
    line.
    """
    drawing = draw_readers(
        {"a": (("orders", 1), ("orders", 0)), "b": (("orders", 2), ("x", 0)), "c": ()}
    )
    assert [(box.kind, box.text, box.note) for box in drawing.boxes] == [
        ("topic", "orders", ""),
        ("topic", "x", ""),
        ("member", "a", "0, 1"),
        ("member", "b", "orders 2; x 0"),
        ("member", "c", ""),
    ]
    assert len(drawing.lines) == 3

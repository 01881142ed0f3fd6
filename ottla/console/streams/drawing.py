"""The drawing of a topology: boxes in columns from the left to the right. Pure.

A box is right of all boxes that lead to it. The boxes of a column are ordered so that few lines
cross. A topic that is written and read has one box, which connects two sub-topologies.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.drawing.placement import Rectangle, Spacing, place
from ottla.console.streams.describe_text import NodeKind, Topology

BOX_WIDTH, BOX_HEIGHT = 210, 30
_SPACING = Spacing(layers=56, boxes=16, margin=10)
_NOTE = 40
_TOPIC, _MEMBER = "topic", "member"


class Box(NamedTuple):
    """A box; `kind` is "topic", "store" or the kind of a node, `note` a short text below the name."""

    x: float
    y: float
    text: str
    kind: str
    note: str


class Line(NamedTuple):
    """A line between two boxes; dashed between a processor and its store."""

    x1: float
    y1: float
    x2: float
    y2: float
    is_dashed: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes and lines with positions in pixels."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


Vertex = tuple[str, str]
Edge = tuple[Vertex, Vertex]


def draw_topology(topology: Topology, notes: Mapping[str, str]) -> Drawing:
    """Return the drawing; `notes` are by topic."""
    vertices, edges = _graph(topology)
    return draw_graph(vertices, edges, {(_TOPIC, name): note for name, note in notes.items()})


def draw_readers(
    members: Mapping[str, Sequence[tuple[str, int]]],
) -> Drawing:
    """Return the drawing of topics and the members of a group that read their partitions."""
    counts = Counter((topic, name) for name, keys in members.items() for topic, _ in keys)
    edges: list[Edge] = [((_TOPIC, topic), (_MEMBER, name)) for topic, name in counts]
    vertices = dict.fromkeys([*(start for start, _ in edges), *((_MEMBER, n) for n in members)])
    notes = {(_MEMBER, name): _partitions(keys) for name, keys in members.items()}
    return draw_graph(list(vertices), edges, notes)


def draw_graph(
    vertices: Sequence[Vertex], edges: Sequence[Edge], notes: Mapping[Vertex, str]
) -> Drawing:
    """Return the drawing of a graph; `notes` are texts below the names."""
    placement = place(
        dict.fromkeys(vertices, (BOX_WIDTH, BOX_HEIGHT)), edges, _SPACING, is_down=False
    )
    places = placement.places
    boxes = tuple(
        Box(places[vertex].x, places[vertex].y, vertex[1], vertex[0], notes.get(vertex, ""))
        for vertex in vertices
    )
    lines = tuple(_line(places[start], places[end], end[0] == "store") for start, end in edges)
    return Drawing(placement.width, placement.height, boxes, lines)


def _partitions(keys: Sequence[tuple[str, int]]) -> str:
    """Return the numbers of partitions: of each topic if there are several."""
    topics: dict[str, list[str]] = {}
    for topic, partition in sorted(keys):
        topics.setdefault(topic, []).append(str(partition))
    if len(topics) < 2:
        return ", ".join(number for numbers in topics.values() for number in numbers)[:_NOTE]
    return "; ".join(f"{topic} {', '.join(numbers)}" for topic, numbers in topics.items())[:_NOTE]


def _graph(topology: Topology) -> tuple[list[Vertex], list[Edge]]:
    kinds = {node.name: str(node.kind) for node in topology.nodes}
    vertices: dict[Vertex, None] = {}
    edges: list[Edge] = []
    for node in topology.nodes:
        this = str(node.kind), node.name
        topics = [
            (_TOPIC, name) for name in node.topics or ((node.dynamic,) if node.dynamic else ())
        ]
        stores = [("store", name) for name in node.stores]
        vertices |= dict.fromkeys([this, *topics, *stores])
        edges += [
            (topic, this) if node.kind is NodeKind.SOURCE else (this, topic) for topic in topics
        ]
        edges += [(this, store) for store in stores]
        edges += [(this, (kinds[name], name)) for name in node.successors]
    return list(vertices), edges


def _line(start: Rectangle, end: Rectangle, is_dashed: bool) -> Line:
    middle = BOX_HEIGHT / 2
    return Line(start.x + BOX_WIDTH, start.y + middle, end.x, end.y + middle, is_dashed)

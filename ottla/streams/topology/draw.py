"""Draws a topology as SVG, without dependencies.

Nodes are in layers, each below all of its parents; the nodes of a layer are ordered so that few
lines cross. Stores are next to the layers of the nodes that use them, repartition topics between
their sink and source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ottla.base.drawing.placement import Rectangle, Spacing, place

_HEIGHT = 34
_SPACING = Spacing(layers=46, boxes=24, margin=20)
_CHARACTER = 6.6
_COLOURS = {
    "topic": ("#e8eefc", "#4a6fd0"),
    "source": ("#e9f6ec", "#3c8d52"),
    "processor": ("#ffffff", "#555555"),
    "sink": ("#fdf0e3", "#c07a26"),
    "store": ("#f3ecfa", "#7f52b0"),
}


@dataclass(frozen=True)
class Box:
    """A box of the drawing: a topic, source, processor, sink or store; `name` is unique."""

    name: str
    kind: str
    text: str

    @property
    def width(self) -> float:
        """The width in pixels."""
        return max(60.0, len(self.text) * _CHARACTER + 18)


@dataclass(frozen=True)
class Line:
    """A line between two boxes; `dashed` if it connects a processor to a store."""

    start: str
    end: str
    dashed: bool = False


def draw(boxes: Sequence[Box], lines: Sequence[Line]) -> str:
    """Return the drawing. Lines connect existing boxes; a loop is cut at its entry."""
    placement = place(
        {box.name: (box.width, _HEIGHT) for box in boxes},
        [(line.start, line.end) for line in lines],
        _SPACING,
        is_down=True,
    )
    parts = [_line(line, placement.places) for line in lines]
    parts += [_box(box, placement.places[box.name]) for box in boxes]
    body = "\n".join(parts)
    width, height = placement.width, placement.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _box(box: Box, at: Rectangle) -> str:
    fill, stroke = _COLOURS[box.kind]
    radius = {"store": 16, "topic": 16}.get(box.kind, 4)
    title = f"<title>{escape(box.name)}</title>"
    return (
        f'<g>{title}<rect x="{at.x:.1f}" y="{at.y:.1f}" width="{at.width:.1f}" height="{_HEIGHT}" '
        f'rx="{radius}" fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{at.x + at.width / 2:.1f}" y="{at.y + _HEIGHT / 2 + 4:.1f}" '
        f'text-anchor="middle">{escape(box.text)}</text></g>'
    )


def _line(line: Line, places: Mapping[str, Rectangle]) -> str:
    start, end = places[line.start], places[line.end]
    x1, x2 = start.x + start.width / 2, end.x + end.width / 2
    y1, y2 = start.y + _HEIGHT, end.y
    bend = (y2 - y1) / 2
    style = ' stroke-dasharray="4 3"' if line.dashed else ' marker-end="url(#tip)"'
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
    return f'<path d="{path}" fill="none" stroke="#777"{style}/>'

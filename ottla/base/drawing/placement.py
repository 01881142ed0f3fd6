"""The places of a drawn graph's boxes, in layers from the top down or from left to right. Pure.

A drawing in an SVG file and one in a page of the console differ in the sizes of boxes and in their
direction only.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.base.drawing.layers import layered

Node = TypeVar("Node", bound=Hashable)


class Rectangle(NamedTuple):
    """The place of a box in pixels; `x` and `y` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


class Spacing(NamedTuple):
    """Pixels between layers, between the boxes of one layer, and around the drawing."""

    layers: float
    boxes: float
    margin: float


class DrawingPlacement(NamedTuple, Generic[Node]):
    """The rectangle of each node, and the size of the drawing."""

    places: Mapping[Node, Rectangle]
    width: float
    height: float


def place(
    sizes: Mapping[Node, tuple[float, float]],
    lines: Sequence[tuple[Node, Node]],
    spacing: Spacing,
    *,
    is_down: bool,
) -> DrawingPlacement[Node]:
    """Place boxes of these widths and heights behind those with a line to them; layers are centred.

    With `is_down` a layer is a row, otherwise a column.
    """
    layers = layered(list(sizes), lines)
    # Along a layer boxes are beside each other; across, layers follow each other.
    along, across = (0, 1) if is_down else (1, 0)
    lengths = [
        sum(sizes[node][along] for node in layer) + spacing.boxes * (len(layer) - 1)
        for layer in layers
    ]
    longest = max(lengths, default=0.0)
    places: dict[Node, Rectangle] = {}
    depth = spacing.margin
    for layer, length in zip(layers, lengths, strict=True):
        position = spacing.margin + (longest - length) / 2
        for node in layer:
            corner = (position, depth) if is_down else (depth, position)
            places[node] = Rectangle(*corner, *sizes[node])
            position += sizes[node][along] + spacing.boxes
        depth += max(sizes[node][across] for node in layer) + spacing.layers
    depth += spacing.margin - (spacing.layers if layers else 0)
    size = longest + 2 * spacing.margin
    return DrawingPlacement(places, *((size, depth) if is_down else (depth, size)))

"""The layers of a drawn graph: nodes by their depth, ordered so that few lines cross. Pure."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
_PASSES = 4


def layered(nodes: Sequence[Node], lines: Sequence[tuple[Node, Node]]) -> list[list[Node]]:
    """Return the nodes by layer: each is behind all nodes with a line to it, except in a loop."""
    layers = _by_depth(nodes, lines)
    _order(layers, lines)
    return layers


def _by_depth(nodes: Sequence[Node], lines: Sequence[tuple[Node, Node]]) -> list[list[Node]]:
    """Return the nodes by the length of the longest path to them; a loop is cut at its entry."""
    after: dict[Node, list[Node]] = {node: [] for node in nodes}
    waiting = dict.fromkeys(nodes, 0)
    for start, end in lines:
        after[start].append(end)
        waiting[end] += 1
    depth = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not waiting[node]]
    pending = dict.fromkeys(node for node in nodes if waiting[node])
    while ready or pending:
        if not ready:
            entry = next(iter(pending))
            del pending[entry]
            ready.append(entry)
        node = ready.pop()
        for successor in after[node]:
            if successor not in pending:
                continue
            depth[successor] = max(depth[successor], depth[node] + 1)
            waiting[successor] -= 1
            if not waiting[successor]:
                del pending[successor]
                ready.append(successor)
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        layers[depth[node]].append(node)
    return layers


def _order(layers: list[list[Node]], lines: Sequence[tuple[Node, Node]]) -> None:
    """Order each layer by the mean position of the neighbours, alternately down and up."""
    near: dict[Node, list[Node]] = {node: [] for layer in layers for node in layer}
    for start, end in lines:
        near[start].append(end)
        near[end].append(start)
    for number in range(_PASSES):
        for layer in layers if number % 2 == 0 else layers[::-1]:
            positions = {
                node: (row + 0.5) / len(rows) for rows in layers for row, node in enumerate(rows)
            }
            means = {
                node: sum(positions[other] for other in near[node]) / len(near[node])
                if near[node]
                else positions[node]
                for node in layer
            }
            layer.sort(key=means.__getitem__)

"""Kafka's description of a topology, with exactly the same text.

Kafka prints some names in the order of hash sets, and of trees whose order changed while they were
filled. Both orders are reproduced here, because users compare the texts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_MASK = (1 << 32) - 1


@dataclass(frozen=True)
class DescribedNode:
    """A node of the description: `names` are a source's topics, a sink's topic, or a processor's
    stores.
    """

    name: str
    kind: str
    parents: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    other: str | None = None
    """A source's pattern or the name of a sink's topic function."""
    is_global: bool = False


@dataclass(frozen=True)
class NodeDescription:
    """A node with the names of its neighbours; fields that do not apply to its kind are empty."""

    name: str
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]
    topic_set: tuple[str, ...] = ()
    """The topics of a source."""
    topic_pattern: str | None = None
    """The pattern of a source's topics."""
    stores: tuple[str, ...] = ()
    """The stores of a processor."""
    topic: str | None = None
    """The topic of a sink."""
    topic_name_extractor: str | None = None
    """The name of the function that returns a sink's topic."""


@dataclass(frozen=True)
class Subtopology:
    """Nodes that share a path or a store, in the order of the description."""

    id: int
    nodes: tuple[NodeDescription, ...]


@dataclass(frozen=True)
class GlobalStore:
    """A global store with its source and processor."""

    id: int
    source: NodeDescription
    processor: NodeDescription


@dataclass(frozen=True)
class TopologyDescription:
    """The description of a topology: its parts, and the text as `str()`."""

    text: str
    subtopologies: tuple[Subtopology, ...]
    global_stores: tuple[GlobalStore, ...]

    def __str__(self) -> str:
        return self.text


@dataclass
class _Placed:
    node: DescribedNode
    size: int = 1
    predecessors: list["_Placed"] = field(default_factory=list)
    successors: list["_Placed"] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, str]:
        return -self.size, self.node.name

    def grow(self, count: int) -> None:
        self.size += count
        for predecessor in self.predecessors:
            predecessor.grow(count)


def _java_hash(text: str) -> int:
    result = 0
    for character in text:
        result = (31 * result + ord(character)) & _MASK
    return result ^ (result >> 16)


def _hash_set_order(names: Iterable[str]) -> list[str]:
    """Return names in the iteration order of a Java HashSet."""
    unique = list(dict.fromkeys(names))
    size = 16
    while len(unique) > size * 3 // 4:
        size *= 2
    return sorted(unique, key=lambda name: _java_hash(name) & (size - 1))


def _insert(placed_nodes: list[_Placed], new: _Placed) -> None:
    low, high = 0, len(placed_nodes)
    while low < high:
        middle = (low + high) // 2
        if placed_nodes[middle].rank < new.rank:
            low = middle + 1
        else:
            high = middle
    placed_nodes.insert(low, new)


def _placed(nodes: Sequence[DescribedNode]) -> list[_Placed]:
    by_name = {node.name: _Placed(node) for node in nodes}
    for name in _hash_set_order(by_name):
        placed = by_name[name]
        for parent_name in placed.node.parents:
            parent = by_name[parent_name]
            _insert(placed.predecessors, parent)
            _insert(parent.successors, placed)
            parent.grow(placed.size)
    return sorted(by_name.values(), key=lambda placed: placed.rank)


def _names(placed_nodes: Sequence[_Placed]) -> str:
    return ", ".join(placed.node.name for placed in placed_nodes) or "none"


def _text(placed: _Placed) -> str:
    node = placed.node
    listed = ", ".join(_hash_set_order(node.names))
    below = f"      --> {_names(placed.successors)}"
    above = f"      <-- {_names(placed.predecessors)}"
    if node.kind == "source":
        return f"Source: {node.name} (topics: {node.other or f'[{listed}]'})\n{below}"
    if node.kind == "sink":
        target = f"topic: {listed}" if node.other is None else f"extractor class: {node.other}"
        return f"Sink: {node.name} ({target})\n{above}"
    return f"Processor: {node.name} (stores: [{listed}])\n{below}\n{above}"


def _described(placed: _Placed) -> NodeDescription:
    node, names = placed.node, tuple(placed.node.names)
    above = tuple(predecessor.node.name for predecessor in placed.predecessors)
    below = tuple(successor.node.name for successor in placed.successors)
    if node.kind == "source":
        return NodeDescription(node.name, above, below, names, node.other)
    if node.kind == "sink":
        topic = names[0] if names else None
        return NodeDescription(
            node.name, above, below, topic=topic, topic_name_extractor=node.other
        )
    return NodeDescription(node.name, above, below, stores=names)


def describe(groups: Sequence[Sequence[DescribedNode]]) -> TopologyDescription:
    """Return the description of sub-topologies, in the given order."""
    parts = ["Topologies:\n "]
    subtopologies, global_stores = [], []
    for number, nodes in enumerate(groups):
        placed_nodes = _placed(nodes)
        described = [_described(placed) for placed in placed_nodes]
        lines = "".join(f"    {_text(placed)}\n" for placed in placed_nodes)
        if any(node.is_global for node in nodes):
            parts.append(
                f"  Sub-topology: {number} for global store (will not generate tasks)\n{lines}"
            )
            first, *following = sorted(described, key=lambda node: bool(node.predecessors))
            global_stores.append(GlobalStore(number, first, following[0]))
        else:
            parts.append(f"  Sub-topology: {number}\n{lines}\n")
            subtopologies.append(Subtopology(number, tuple(described)))
    return TopologyDescription("".join(parts), tuple(subtopologies), tuple(global_stores))

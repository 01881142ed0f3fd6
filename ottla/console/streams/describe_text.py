"""Reads the text of Kafka's `Topology#describe`. Pure.

Kafka Streams prints it with `System.out.println(topology.describe())`, Ottla with
`print(topology.describe())`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from ottla.base.errors import ConfigError

TEXT_MAX, NODES_MAX = 262_144, 2_000
_SUBTOPOLOGY = re.compile(r"Sub-topology: (\d+)( for global store.*)?")
_NODE = re.compile(
    r"(Source|Processor|Sink): (\S+) \((topics|stores|topic|extractor class): (.*)\)"
)
_NONE = "none"


class NodeKind(StrEnum):
    """The kinds of nodes; a topic is a node of its own only in drawings without a description."""

    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class TopologyNode:
    """A node with the names of the nodes after it.

    `topics` are those that a source reads or a sink writes; `dynamic` is the pattern of a source's
    topics, or the name of the function that chooses a sink's topic, else empty.
    """

    name: str
    kind: NodeKind
    subtopology: int
    successors: tuple[str, ...]
    topics: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    dynamic: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """The nodes in the order of the text."""

    nodes: tuple[TopologyNode, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics that sources read, by name."""
        return _names(self, NodeKind.SOURCE)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that sinks write, by name."""
        return _names(self, NodeKind.SINK)

    @property
    def stores(self) -> tuple[str, ...]:
        """The state stores by name."""
        return tuple(sorted({store for node in self.nodes for store in node.stores}))


def parse_topology(text: str) -> Topology:
    """Return the topology of a description; ConfigError with the line that cannot be read."""
    if len(text) > TEXT_MAX:
        raise ConfigError(f"a description may have {TEXT_MAX} characters at most")
    nodes: list[TopologyNode] = []
    number = -1
    for index, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words == "Topologies:":
            continue
        if match := _SUBTOPOLOGY.match(words):
            number = int(match[1])
        elif match := _NODE.fullmatch(words):
            if number < 0:
                raise _wrong(index, line, "a node is before the first sub-topology")
            nodes.append(_node(match, number))
        elif words.startswith("-->") and nodes:
            nodes[-1] = _with_successors(nodes[-1], words)
        elif not words.startswith("<--"):
            raise _wrong(index, line, "it is neither a sub-topology, a node nor an arrow")
    _check(nodes)
    return Topology(tuple(nodes))


def _check(nodes: list[TopologyNode]) -> None:
    if not nodes:
        raise ConfigError("the text has no nodes: paste the output of Topology#describe")
    if len(nodes) > NODES_MAX:
        raise ConfigError(f"the topology has {len(nodes)} nodes: {NODES_MAX} can be drawn")
    names = {node.name for node in nodes}
    if len(names) < len(nodes):
        raise ConfigError("two nodes have the same name: paste the description of one topology")
    for node in nodes:
        if missing := [name for name in node.successors if name not in names]:
            raise ConfigError(f"node {node.name!r} leads to {missing[0]!r}, which is not described")


def _node(match: re.Match[str], number: int) -> TopologyNode:
    kind, name, field, value = NodeKind(match[1].lower()), match[2], match[3], match[4]
    is_list = value.startswith("[") and value.endswith("]")
    listed = tuple(word.strip() for word in value.strip("[]").split(",") if word.strip())
    if field == "stores":
        return TopologyNode(name, kind, number, (), stores=listed)
    if field == "extractor class" or (field == "topics" and not is_list):
        return TopologyNode(name, kind, number, (), dynamic=value)
    topics = listed if field == "topics" else (value,)
    return TopologyNode(name, kind, number, (), topics=topics)


def _with_successors(node: TopologyNode, words: str) -> TopologyNode:
    names = tuple(word.strip() for word in words.removeprefix("-->").split(","))
    names = tuple(name for name in names if name and name != _NONE)
    return TopologyNode(
        node.name, node.kind, node.subtopology, names, node.topics, node.stores, node.dynamic
    )


def _names(topology: Topology, kind: NodeKind) -> tuple[str, ...]:
    nodes = (node for node in topology.nodes if node.kind is kind)
    return tuple(sorted({topic for node in nodes for topic in node.topics}))


def _wrong(number: int, line: str, reason: str) -> ConfigError:
    return ConfigError(f"line {number} of the description is {line.strip()[:80]!r}: {reason}")

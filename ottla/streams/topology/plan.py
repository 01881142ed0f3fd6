"""The logical plan: the steps that the DSL added, as frozen nodes that do not depend on an engine.

`Graph` is the plan while it is built. It assigns Kafka's numbered names, and replaces steps when a
later call needs it (a table must be materialized, old values must be sent). `Graph.plan()` freezes
it in the order in which Kafka writes its topologies.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import already_added, check_name
from ottla.streams.processor.api import (
    StreamPartitioner,
    Supplier,
    TimestampExtractor,
    TopicNameExtractor,
)
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import StoreBuilder


@dataclass(frozen=True)
class PlanNode:
    """A step of the plan; `parents` are the steps whose records or changes it processes."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceNode(PlanNode):
    """Reads topics; `mergeable` sources (of streams, not tables) with the same topics are merged."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    mergeable: bool = False


@dataclass(frozen=True)
class OperatorNode(PlanNode):
    """Runs an operator; `stores` are those that it uses besides its own."""

    operator: Supplier = field(default=lambda: _no_processor())
    stores: tuple[str, ...] = ()
    output_versioned: bool | None = None
    """If a table's changes come from a versioned store; None: as its parents' do."""
    grace_period_ms: int | None = None
    takes_null_keys: bool = False
    """An outer join: repartition topics above it keep records without a key (KIP-962)."""


def _no_processor() -> Any:
    raise TypeError("an operator node has an operator")


@dataclass(frozen=True)
class RepartitionNode(PlanNode):
    """Writes to an internal topic and reads it back, by key; the step is named after its source."""

    topic: str = ""
    sink: str = ""
    key_filter: str | None = None
    """The name of the step that drops records without a key; None for tables."""
    keeps_null_keys: bool = False
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    partitioner: StreamPartitioner | None = None
    partitions: int | None = None
    carries_changes: bool = False
    """Values are changes of a table, not plain values."""


@dataclass(frozen=True)
class SinkNode(PlanNode):
    """Writes to a topic, or to the topic that a function returns; internal topics get the app's
    name.
    """

    topic: str | TopicNameExtractor = ""
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    partitioner: StreamPartitioner | None = None
    internal: bool = False


@dataclass(frozen=True)
class GlobalStoreNode(PlanNode):
    """Updates a global store from a whole topic."""

    source: SourceNode = field(default_factory=lambda: SourceNode(""))
    processor: str = ""
    supplier: Supplier = field(default=lambda: _no_processor())
    store: StoreBuilder = field(default_factory=lambda: StoreBuilder("", "key_value"))


@dataclass(frozen=True)
class StoreNode(PlanNode):
    """A store that operators use by its name."""

    store: StoreBuilder = field(default_factory=lambda: StoreBuilder("", "key_value"))


@dataclass(frozen=True)
class Plan:
    """All steps in the order in which Kafka writes a topology: parents first."""

    nodes: tuple[PlanNode, ...]
    copartitioned: tuple[tuple[str, ...], ...] = ()
    """Topics that are joined by key and need the same number of partitions."""

    def __iter__(self) -> Iterator[PlanNode]:
        return iter(self.nodes)


class Graph:
    """The plan while it is built; belongs to one StreamsBuilder.

    `new_stream` creates the KStream of a flow: KTable cannot import KStream, which imports KTable.
    """

    def __init__(self, new_stream: Callable[[Any], Any]) -> None:
        self.new_stream = new_stream
        self._nodes: dict[str, PlanNode] = {}
        self._priorities: dict[str, int] = {}
        self._index = 0
        self._priority = 0
        self.shared_repartitions: dict[str, str] = {}
        """The repartition step that joins of a stream share, by the stream's name."""
        self._copartitioned: list[tuple[str, ...]] = []

    def new_name(self, prefix: str) -> str:
        """Return the next numbered name; each call uses a number, as in Kafka."""
        name = f"{prefix}{self._index:010d}"
        self._index += 1
        return name

    def new_store_name(self, prefix: str) -> str:
        """Return the next numbered name of a store."""
        return self.new_name(f"{prefix}STATE-STORE-")

    def named(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """Return a user's name with a suffix, or the next numbered name; both use a number.

        Raises TopologyError if the name, with or without its suffix, is illegal.
        """
        numbered = self.new_name(prefix)
        if name is None:
            return numbered
        check_name(name, "an operator")
        check_name(name + suffix, "an operator")
        return name + suffix

    def add(self, node: PlanNode) -> None:
        """Add a step. Adding it again below the same parents moves it behind the other steps."""
        existing = self._nodes.get(node.name)
        if existing is not None and existing is not node:
            raise TopologyError(
                f"another operator is named {node.name!r} already: give each a name of its own"
            )
        self._nodes[node.name] = node
        # Kafka increments its counter once for each parent.
        self._priority += max(1, len(node.parents))
        self._priorities[node.name] = self._priority

    def add_store(self, store: StoreBuilder) -> None:
        """Add a store that operators use by its name; the same description may be added again."""
        if not isinstance(store, StoreBuilder):
            raise TopologyError(
                f"a store is a description such as Stores.key_value('name'), not {store!r}"
            )
        check_name(store.name, "a store")
        name = f"store {store.name}"
        existing = self._nodes.get(name)
        if existing is None:
            self.add(StoreNode(name, (), store))
        elif not isinstance(existing, StoreNode) or existing.store is not store:
            raise already_added(store.name)

    def node(self, name: str) -> PlanNode:
        """Return a step."""
        return self._nodes[name]

    def change_operator(self, name: str, **changes: Any) -> None:
        """Replace fields of a step's operator."""
        node = self._nodes[name]
        assert isinstance(node, OperatorNode)
        operator: Any = replace(node.operator, **changes)  # type: ignore[type-var]
        self._nodes[name] = replace(node, operator=operator)

    def operator(self, name: str) -> Any:
        """Return the operator of a step."""
        node = self._nodes[name]
        assert isinstance(node, OperatorNode)
        return node.operator

    def window_grace_ms(self, name: str, path: tuple[str, ...] = ()) -> int:
        """Return the grace period of the windows above a step. Raises TopologyError if no windows
        are found.
        """
        node = self._nodes[name]
        if isinstance(node, OperatorNode) and node.grace_period_ms is not None:
            return node.grace_period_ms
        if not node.parents:
            chain = " -> ".join((name, *path))
            raise TopologyError(f"only windows close; {chain} has no window")
        return max(self.window_grace_ms(parent, (name, *path)) for parent in node.parents)

    def is_versioned(self, name: str) -> bool:
        """Return True if the changes of a table come from a versioned store."""
        return _is_versioned(self._nodes, name)

    def history_ms(self, name: str) -> int | None:
        """Return the history retention of a table in ms; None if it is not versioned."""
        node = self._nodes[name]
        store = getattr(node.operator, "store", None) if isinstance(node, OperatorNode) else None
        if isinstance(store, StoreBuilder):
            return store.retention_ms if store.kind == "versioned" else None
        if not self.is_versioned(name):
            return None
        histories = [self.history_ms(parent) for parent in node.parents]
        return min((history for history in histories if history is not None), default=None)

    def copartition(self, *steps: str) -> None:
        """Declare that steps must be copartitioned."""
        self._copartitioned.append(steps)

    def _topics_above(self, name: str) -> list[str]:
        """Return the topics that determine a step's partitions; empty if a pattern selects them."""
        node = self._nodes[name]
        if isinstance(node, RepartitionNode):
            return [node.topic]
        if isinstance(node, SourceNode):
            return list(node.topics)
        return [topic for parent in node.parents for topic in self._topics_above(parent)]

    def plan(self) -> Plan:
        """Freeze the plan: merge sources, propagate versions, and order the steps as Kafka does."""
        nodes = _merge_sources(self._nodes)
        keeping = _above_null_key_joins(nodes)
        for name, node in nodes.items():
            if isinstance(node, RepartitionNode):
                nodes[name] = replace(node, keeps_null_keys=name in keeping)
            elif isinstance(node, OperatorNode) and hasattr(node.operator, "versioned_semantics"):
                versioned = any(_is_versioned(nodes, parent) for parent in node.parents)
                operator: Any = replace(
                    node.operator,  # type: ignore[type-var]
                    versioned_semantics=versioned,
                )
                nodes[name] = replace(node, operator=operator)
        groups = (
            dict.fromkeys(topic for step in steps for topic in self._topics_above(step))
            for steps in self._copartitioned
        )
        ordered = tuple(nodes[name] for name in _in_order(nodes, self._priorities))
        return Plan(ordered, tuple(tuple(topics) for topics in groups))


def _merge_sources(nodes: dict[str, PlanNode]) -> dict[str, PlanNode]:
    """Merge the sources of streams with the same topics."""
    first: dict[str, SourceNode] = {}
    merged: dict[str, str] = {}
    for node in nodes.values():
        if not isinstance(node, SourceNode) or not node.mergeable:
            continue
        for topic in node.topics or (f"pattern {node.pattern}",):
            first_node = first.setdefault(topic, node)
            if first_node is node:
                continue
            if set(first_node.topics) != set(node.topics):
                raise TopologyError(
                    f"sources {first_node.name} and {node.name} both read topic {topic}, but not the same "
                    "set of topics: read the same topics in both"
                )
            if first_node.offset_reset != node.offset_reset:
                subject = f"topic {topic!r}" if node.topics else f"pattern {node.pattern!r}"
                first_reset, second_reset = (
                    _shown(first_node.offset_reset),
                    _shown(node.offset_reset),
                )
                raise TopologyError(
                    f"{subject} is read by {first_node.name} with offset_reset {first_reset} and by {node.name} with "
                    f"{second_reset}: give both the same"
                )
            merged[node.name] = first_node.name
    return {
        name: replace(node, parents=tuple(merged.get(parent, parent) for parent in node.parents))
        for name, node in nodes.items()
        if name not in merged
    }


def _shown(offset_reset: str | None) -> str:
    return "none" if offset_reset is None else repr(offset_reset)


def _is_versioned(nodes: dict[str, PlanNode], name: str) -> bool:
    node = nodes[name]
    if isinstance(node, OperatorNode) and node.output_versioned is not None:
        return node.output_versioned
    return bool(node.parents) and all(_is_versioned(nodes, parent) for parent in node.parents)


def _above_null_key_joins(nodes: dict[str, PlanNode]) -> set[str]:
    """Return the steps above outer joins."""
    results: set[str] = set()
    pending: list[PlanNode] = [
        node for node in nodes.values() if isinstance(node, OperatorNode) and node.takes_null_keys
    ]
    while pending:
        for parent in pending.pop().parents:
            if parent not in results:
                results.add(parent)
                pending.append(nodes[parent])
    return results


def _in_order(nodes: dict[str, PlanNode], priorities: dict[str, int]) -> Iterator[str]:
    """Yield the steps as Kafka writes them: by priority, each after all of its parents."""
    children: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for parent in node.parents:
            children.setdefault(parent, []).append(name)
    heap = [(priorities[name], name) for name, node in nodes.items() if not node.parents]
    heapq.heapify(heap)
    written: set[str] = set()
    while heap:
        _, name = heapq.heappop(heap)
        if name in written or not written.issuperset(nodes[name].parents):
            continue
        written.add(name)
        yield name
        for child in children.get(name, ()):
            heapq.heappush(heap, (priorities[child], child))

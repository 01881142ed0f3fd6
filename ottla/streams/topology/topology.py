"""A topology: sources, processors, stores and sinks, by name; a task runs it.

`StreamsBuilder.build()` creates one from a plan; the Processor API adds the nodes directly. Nodes
that share a path or a store form a sub-topology.

Not done: interactive queries of a read-only store (`app.store`), because it has no changelog of its
own; global stores can be queried.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.streams.expressions.arity import chooses_partition, with_context
from ottla.streams.model.errors import StreamsError, TopologyError
from ottla.streams.model.names import already_added, check_name
from ottla.streams.model.spelling import SnakeCase, did_you_mean
from ottla.streams.options.dsl_options import Consumed
from ottla.streams.processor.api import (
    StreamPartitioner,
    Supplier,
    TimestampExtractor,
    TopicNameExtractor,
    check_supplier,
    supplied_stores,
)
from ottla.streams.processor.timestamps import extractor_of
from ottla.streams.serdes import Serde, check_serdes
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.describe import DescribedNode, TopologyDescription, describe
from ottla.streams.topology.draw import Box, Line, draw


@dataclass(frozen=True)
class Source:
    """Reads topics, by name or by a pattern; internal topics get the application's name."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    is_global: bool = False
    carries_changes: bool = False
    """If values are changes of a table: an internal topic between its grouping and its aggregation."""


@dataclass(frozen=True)
class ProcessorNode:
    """Runs a processor on the records that its parents forward."""

    name: str
    supplier: Supplier
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Sink:
    """Writes records to a topic, or to the topic that the function `topic` returns."""

    name: str
    topic: str | Callable[..., str]
    parents: tuple[str, ...]
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    partitioner: Callable[..., int | Iterable[int] | None] | None = None
    carries_changes: bool = False


TopologyNode = Source | ProcessorNode | Sink


@dataclass
class Topology(SnakeCase):
    """The graph of nodes and stores. Each addition is checked immediately (TopologyError)."""

    nodes: dict[str, TopologyNode] = field(default_factory=dict)
    stores: dict[str, StoreBuilder] = field(default_factory=dict)
    global_stores: dict[str, StoreBuilder] = field(default_factory=dict)
    connected: dict[str, list[str]] = field(default_factory=dict)
    """The stores of each processor, in the order in which they were connected."""
    internal_topics: dict[str, int | None] = field(default_factory=dict)
    """Repartition topics without the application's name, and their numbers of partitions if set."""
    copartitioned: list[tuple[str, ...]] = field(default_factory=list)
    """Topics that are joined by key, without the application's name."""
    _groups: dict[str, str] = field(default_factory=dict)
    _users: dict[str, str] = field(default_factory=dict)

    def add_source(
        self,
        name: str,
        *topics: str | re.Pattern[str],
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> "Topology":
        """Add a source of one or more topics, or of a pattern of topics."""
        if name in ("earliest", "latest"):
            raise TopologyError(
                f"the first argument is the source's name: pass {name!r} as offset_reset={name!r}"
            )
        if len(topics) == 1 and isinstance(topics[0], re.Pattern):
            topics_and_pattern: tuple[tuple[str, ...], str | None] = ((), topics[0].pattern)
        else:
            topics_and_pattern = tuple(_topic_name(topic) for topic in topics), None
        check_serdes(key, value)
        source = Source(name, *topics_and_pattern, key, value, timestamp_extractor, offset_reset)
        self.add(source)
        return self

    def add(self, source: Source) -> None:
        """Add the description of a source."""
        self._check_name(source.name)
        if not source.topics and source.pattern is None:
            raise TopologyError(f"source {source.name} reads no topic")
        if source.offset_reset not in (None, "earliest", "latest"):
            raise TopologyError(
                f"a source starts at earliest or latest, not at {source.offset_reset!r}"
            )
        for index, topic in enumerate(source.topics):
            check_name(topic, "a topic")
            if topic in source.topics[:index]:
                raise TopologyError(f"topic {topic!r} is named twice for source {source.name}")
            self._check_topic(topic)
        self._check_patterns(source)
        extractor = extractor_of(source.timestamp_extractor)
        self.nodes[source.name] = replace(source, timestamp_extractor=extractor)
        self._groups[source.name] = source.name

    def add_processor(self, name: str, supplier: Supplier, *parents: str) -> "Topology":
        """Add a processor below its parents, with the stores of its supplier."""
        check_supplier(supplier, f"processor {name}")
        stores = supplied_stores(supplier)
        self._add_child(ProcessorNode(name, supplier, parents))
        for store in stores:
            self.add_state_store(store, name)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicNameExtractor,
        *parents: str,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        carries_changes: bool = False,
    ) -> "Topology":
        """Add a sink.

        The topic may be a function of the value, of key and value, or of key, value and context.
        """
        wrong = next((parent for parent in parents if not isinstance(parent, str)), None)
        if wrong is not None:
            raise TopologyError(
                f"a sink is added with its name, its topic and its parents; {wrong!r} must be a keyword argument: key=, "
                "value= or partitioner="
            )
        check_serdes(key, value)
        if isinstance(topic, str):
            check_name(topic, "a topic")
        target = topic if isinstance(topic, str) else with_context(topic, "a topic name extractor")
        chosen = chooses_partition(partitioner)
        self._add_child(Sink(name, target, parents, key, value, chosen, carries_changes))
        return self

    def _add_child(self, node: ProcessorNode | Sink) -> None:
        self._check_name(node.name)
        if not node.parents:
            raise TopologyError(f"{node.name} has no parent; name one or more nodes above it")
        for parent in node.parents:
            if parent not in self.nodes:
                raise TopologyError(f"parent {parent} of {node.name} is not added yet")
            if isinstance(self.nodes[parent], Sink):
                raise TopologyError(f"{node.name} cannot have the sink {parent} as a parent")
        self.nodes[node.name] = node
        self._groups[node.name] = node.name
        self._unite(node.name, node.parents)

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> "Topology":
        """Add a store and connect it to processors. To share it, the same description may be added
        again.
        """
        _check_store(builder)
        existing = self.stores.get(builder.name)
        if (existing is not None and existing is not builder) or builder.name in self.global_stores:
            raise already_added(builder.name)
        for processor in processors:
            self._check_processor(processor)
        self.stores[builder.name] = builder
        for processor in processors:
            self.connect_processor_and_state_stores(processor, builder.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> "Topology":
        """Connect a processor to stores that have been added."""
        self._check_processor(processor)
        if not stores:
            raise TopologyError(
                f"no store is named for processor {processor}: name one or more stores"
            )
        for store in stores:
            if store in self.global_stores:
                raise TopologyError(f"the global store {store} is open to every processor")
            if store not in self.stores:
                near = did_you_mean(store, self.stores)
                raise TopologyError(
                    f"store {store} is not added yet: add it first, with add_state_store{near}"
                )
            names = self.connected.setdefault(processor, [])
            if store not in names:
                names.append(store)
            self._unite(processor, [self._users.setdefault(store, processor)])
        return self

    def _check_processor(self, name: str) -> None:
        if not isinstance(self.nodes.get(name), ProcessorNode):
            raise TopologyError(f"{name} is not a processor of the topology")

    def add_global_store(
        self,
        builder: StoreBuilder,
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: Supplier,
        consumed: Consumed[Any, Any] | None = None,
    ) -> "Topology":
        """Add a store that a processor fills from a whole topic and that every processor may read.

        Its records are processed immediately, before all others. If `consumed` is None, they are
        read with the serdes of the store.
        """
        _check_store(builder)
        source = _source_of(builder, source_name, topic, consumed)
        return self.add_global(builder, source, processor_name, supplier)

    def add_read_only_state_store(
        self,
        builder: StoreBuilder,
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: Supplier,
        consumed: Consumed[Any, Any] | None = None,
    ) -> "Topology":
        """Add a store that a processor fills from a topic, each task from its partition (KIP-813).

        The topic is the changelog of the store. Connect other processors that read the store with
        `connect_processor_and_state_stores`.
        """
        self.add(_source_of(builder, source_name, topic, consumed))
        self.add_processor(processor_name, supplier, source_name)
        return self.add_state_store(builder.with_logging_disabled(), processor_name)

    def add_global(
        self, builder: StoreBuilder, source: Source, processor_name: str, supplier: Supplier
    ) -> "Topology":
        """Add a global store with the description of its source."""
        check_supplier(supplier, f"processor {processor_name}")
        _check_store(builder)
        if len(source.topics) != 1:
            raise TopologyError(f"the global store {builder.name} is filled from one topic")
        if builder.name in self.stores or builder.name in self.global_stores:
            raise already_added(builder.name)
        self._check_name(processor_name)
        if processor_name == source.name:
            raise TopologyError(
                f"the source and the processor of the global store {builder.name} are both named "
                f"{processor_name!r}: give each a name of its own"
            )
        self.add(replace(source, is_global=True))
        self._add_child(ProcessorNode(processor_name, supplier, (source.name,)))
        self.global_stores[builder.name] = builder.with_logging_disabled()
        self.connected[processor_name] = [builder.name]
        return self

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str):
            raise TopologyError(f"a node is named by a text, not by {name!r}")
        if name in self.nodes:
            raise TopologyError(
                f"another node is named {name!r} already: give each a name of its own"
            )

    def _check_patterns(self, source: Source) -> None:
        """Raise TopologyError if a pattern of one source matches a topic of another source."""
        for node in self.nodes.values():
            if not isinstance(node, Source):
                continue
            # As in Kafka, a pattern that matches the topic of a global store may be added after it.
            before = () if node.is_global else node.topics
            for matching, topics in ((source, before), (node, source.topics)):
                pattern = matching.pattern
                result = () if pattern is None else (t for t in topics if re.fullmatch(pattern, t))
                for topic in result:
                    raise TopologyError(
                        f"pattern {pattern!r} of source {matching.name} matches topic {topic!r} that another "
                        f"source reads: leave it out of the pattern"
                    )

    def _check_topic(self, topic: str) -> None:
        for node in self.nodes.values():
            if isinstance(node, Source) and topic in node.topics:
                raise TopologyError(f"topic {topic} is read by source {node.name} already")

    def _root(self, name: str) -> str:
        while self._groups[name] != name:
            name = self._groups[name]
        return name

    def _unite(self, name: str, others: Iterable[str]) -> None:
        for other in others:
            self._groups[self._root(other)] = self._root(name)

    def check_copartitioning(self, partitions: Mapping[str, int]) -> None:
        """Raise TopologyError if topics that are joined by key differ in their number of
        partitions.

        `partitions` are the known numbers of partitions on the broker. A repartition topic without
        a number of its own gets the number of the others.
        """
        for topics in self.copartitioned:
            counts = {
                topic: count
                for topic in topics
                if (count := partitions.get(topic) or self.internal_topics.get(topic)) is not None
            }
            if len(set(counts.values())) > 1:
                listed = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
                raise TopologyError(
                    "topics that are joined by key need the same number of partitions: "
                    f"{listed}; send one of them through "
                    f".repartition(number_of_partitions={max(counts.values())})"
                )

    def subtopologies(self) -> list[list[TopologyNode]]:
        """Return the nodes by sub-topology, including the nodes of global stores."""
        results: dict[str, list[TopologyNode]] = {}
        for node in self.nodes.values():
            results.setdefault(self._root(node.name), []).append(node)
        return list(results.values())

    def describe(self) -> TopologyDescription:
        """Return Kafka's description of the sub-topologies."""
        return describe(
            [[self._described(node) for node in group] for group in self.subtopologies()]
        )

    def to_svg(self) -> str:
        """Return an SVG drawing of the topics, nodes and stores."""
        boxes: dict[tuple[str, str], Box] = {}
        lines: list[Line] = []

        def box(kind: str, name: str) -> str:
            drawn = Box(f"{kind} {name}", kind, name)
            return boxes.setdefault((kind, name), drawn).name

        for node in self.nodes.values():
            node_box = box(_kind(node), node.name)
            if isinstance(node, Source):
                names = node.topics or (f"{node.pattern}",)
                lines += [Line(box("topic", topic), node_box) for topic in names]
                continue
            lines += [
                Line(box(_kind(self.nodes[parent]), parent), node_box) for parent in node.parents
            ]
            if isinstance(node, Sink):
                named = node.topic if isinstance(node.topic, str) else "(by a function)"
                lines.append(Line(node_box, box("topic", named)))
            stores = visible_stores(self, node.name)
            lines += [Line(node_box, box("store", store), dashed=True) for store in stores]
        return draw(list(boxes.values()), lines)

    def _described(self, node: TopologyNode) -> DescribedNode:
        if isinstance(node, Source):
            return DescribedNode(
                node.name, "source", (), node.topics, node.pattern, is_global=node.is_global
            )
        if isinstance(node, Sink):
            if isinstance(node.topic, str):
                return DescribedNode(node.name, "sink", node.parents, (node.topic,))
            return DescribedNode(
                node.name, "sink", node.parents, (), getattr(node.topic, "__qualname__", "function")
            )
        return DescribedNode(node.name, "processor", node.parents, visible_stores(self, node.name))


def visible_stores(topology: Topology, processor: str | None = None) -> tuple[str, ...]:
    """Return the names of all visible stores, or the names of a processor's stores."""
    if processor is None:
        names: Iterable[str] = (*topology.stores, *topology.global_stores)
    else:
        names = topology.connected.get(processor, ())
    hidden = {name for name, store in topology.stores.items() if store.is_hidden}
    return tuple(name for name in names if name not in hidden)


def unknown_store(topology: Topology, name: str) -> StreamsError:
    """Return the error for a name that no visible store has."""
    names = sorted(visible_stores(topology))
    return StreamsError(
        f"there is no store {name}; the topology has: {', '.join(names) or 'none'}"
        f"{did_you_mean(name, names)}"
    )


def check_topology(topology: Any, runner: str) -> None:
    """Raise TypeError for an object that is no topology, such as the builder of one."""
    if not isinstance(topology, Topology):
        raise TypeError(
            f"{runner} runs a Topology, which builder.build() returns; not a "
            f"{type(topology).__name__}"
        )


def _check_store(builder: StoreBuilder) -> None:
    if not isinstance(builder, StoreBuilder):
        raise TopologyError(
            f"a store is added as a description such as Stores.key_value('name'), not as {builder!r}"
        )
    check_name(builder.name, "a store")


def _source_of(
    builder: StoreBuilder, name: str, topic: str, consumed: Consumed[Any, Any] | None
) -> Source:
    options = consumed or Consumed(builder.key, builder.value)
    topics_and_pattern = (_topic_name(topic),), None
    extractor, reset = options.timestamp_extractor, options.offset_reset
    return Source(name, *topics_and_pattern, options.key, options.value, extractor, reset)


def _kind(node: TopologyNode) -> str:
    if isinstance(node, ProcessorNode):
        return "processor"
    return "source" if isinstance(node, Source) else "sink"


def _topic_name(topic: str | re.Pattern[str]) -> str:
    if not isinstance(topic, str):
        if isinstance(topic, re.Pattern):
            raise TopologyError(
                "a source reads topics by their names or by one pattern, not by both"
            )
        raise TopologyError(
            f"a source is added with its name and its topics; {topic!r} must be a keyword argument: key=, value=, "
            "timestamp_extractor= or offset_reset="
        )
    return topic

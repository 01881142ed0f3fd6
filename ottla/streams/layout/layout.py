"""The layout of applications over tasks and stages; this module does not use Spark.

As in Kafka, each sub-topology has one task for each partition; tasks are numbered across all
sub-topologies. Stateless sub-topologies run where the source is read (level 0). The others run in
stages, one transformWithState each, by level: a repartition topic is a shuffle from a stage to a
later one. Only if topics form a cycle (the responses of a foreign-key join), one of them is a topic
on the broker.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ottla.streams.model.errors import TopologyError
from ottla.streams.operators import stateless
from ottla.streams.operators.foreign_key import SubscriptionSend, to_asking_partition
from ottla.streams.operators.table_joins import StreamTableJoin
from ottla.streams.operators.tables import (
    TableMap,
    TableRepartitionMap,
    TableSource,
    TableTransform,
)
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import ProcessorNode, Sink, Source, Topology, TopologyNode

# The operators that are stateless unless they are connected to a store.
_KEEP_NOTHING = (
    stateless.Branch,
    stateless.Filter,
    stateless.FlatMap,
    stateless.FlatMapValues,
    stateless.KeyFilter,
    stateless.Map,
    stateless.MapValues,
    stateless.PassThrough,
    stateless.Peek,
    stateless.SelectKey,
    stateless.ToStream,
    SubscriptionSend,
    TableMap,
    TableRepartitionMap,
    TableSource,
)


@dataclass(frozen=True)
class Application:
    """A topology and the settings of its tasks."""

    topology: Topology
    settings: TaskSettings
    keeps_changelogs: bool = False
    """True if changelogs are topics created for it, with the last change of each micro-batch."""

    def topic_name(self, topic: str) -> str:
        """Return the name of a topic; internal topics have the application's id as a prefix."""
        internal = topic in self.topology.internal_topics
        return f"{self.settings.application_id}-{topic}" if internal else topic


class Routing(Enum):
    """The rule that maps the records of a topic to tasks."""

    BY_PARTITION = "the task of the record's partition, modulo the number of tasks"
    BY_KEY = "the task of the key, if topics of different partition counts are joined"
    TO_ALL = "every task: a global topic"


@dataclass(frozen=True)
class SubTopology:
    """A sub-topology: the properties that all its tasks share.

    `first_task` is the number of the task of partition 0.
    """

    application: Application
    topology: Topology
    level: int
    partitions: int
    first_task: int

    @property
    def tasks(self) -> range:
        """The numbers of its tasks."""
        return range(self.first_task, self.first_task + self.partitions)


@dataclass(frozen=True)
class TaskRoute:
    """A sub-topology that reads a topic, and the rule that maps records to its tasks."""

    sub_topology_number: int
    routing: Routing


@dataclass(frozen=True)
class Layout:
    """All tasks of a query, and the routes of records between them."""

    sub_topologies: tuple[SubTopology, ...]
    routes: Mapping[str, tuple[TaskRoute, ...]]
    """By topic, for all topics that are read from the broker."""
    patterns: tuple[tuple[str, TaskRoute], ...]
    shuffled: Mapping[str, int]
    """By internal topic that is a shuffle, the number of the sub-topology that reads it."""
    created: Mapping[str, int]
    """Internal topics that are on the broker, and their partitions."""
    clock_topic: str | None = None
    """The topic whose records are the wall clock, for tasks that schedule on it."""
    clocked: tuple[int, ...] = ()
    """The numbers of the sub-topologies that receive the clock's records."""
    co_partitioned: frozenset[int] = field(init=False, default=frozenset())
    """The sub-topologies whose tasks read several topics by partition.

    All of these topics must be partitioned by murmur2.
    """
    _first_tasks: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "_first_tasks",
            tuple(sub_topology.first_task for sub_topology in self.sub_topologies),
        )
        co_partitioned = (
            number
            for number, sub_topology in enumerate(self.sub_topologies)
            if self._needs_co_partitioning(sub_topology)
        )
        object.__setattr__(self, "co_partitioned", frozenset(co_partitioned))

    def _needs_co_partitioning(self, sub_topology: SubTopology) -> bool:
        nodes = sub_topology.topology.nodes.values()
        sources = [node for node in nodes if isinstance(node, Source) and not node.is_global]
        name = sub_topology.application.topic_name
        topics = {name(topic) for source in sources for topic in source.topics}
        nodes = sub_topology.application.topology.nodes.values()
        placed = {
            name(node.topic): node.partitioner
            for node in nodes
            if isinstance(node, Sink) and isinstance(node.topic, str) and node.partitioner
        }
        # The responses of a foreign-key join go to the partition that sent the subscription,
        # whatever their keys are.
        topics -= {topic for topic, chosen in placed.items() if chosen is to_asking_partition}
        if topics & placed.keys():
            # The application has its own partitioner for one of the topics.
            return False
        count = len(topics) + sum(2 for source in sources if source.pattern)
        return count > 1 and sub_topology.level > 0 and sub_topology.partitions > 1

    @property
    def levels(self) -> int:
        """The number of stateful stages."""
        return max(sub_topology.level for sub_topology in self.sub_topologies)

    @property
    def task_count(self) -> int:
        """The number of tasks."""
        return self.sub_topologies[-1].tasks.stop

    def sub_topology_of(self, task: int) -> SubTopology:
        """Return the sub-topology of a task."""
        return self.sub_topologies[bisect_right(self._first_tasks, task) - 1]

    def routes_of(self, topic: str) -> tuple[TaskRoute, ...]:
        """Return the routes of a topic's records."""
        result = self.routes.get(topic)
        if result is None:
            result = tuple(
                route for pattern, route in self.patterns if re.fullmatch(pattern, topic)
            )
        return result


@dataclass(eq=False)
class _Part:
    """A sub-topology while the layout is computed."""

    application: Application
    nodes: list[TopologyNode]
    topology: Topology
    level: int = -1
    partitions: int = 0

    @property
    def sources(self) -> list[Source]:
        return [node for node in self.nodes if isinstance(node, Source)]

    @property
    def reads(self) -> list[str]:
        """The topics that are read by name."""
        return [
            self.application.topic_name(topic) for source in self.sources for topic in source.topics
        ]

    @property
    def writes(self) -> list[str]:
        """The topics that are written by name."""
        name = self.application.topic_name
        sinks = [node.topic for node in self.nodes if isinstance(node, Sink)]
        return [name(topic) for topic in sinks if isinstance(topic, str)]

    @property
    def internal(self) -> set[str]:
        """The names of the application's internal topics."""
        return {self.application.topic_name(topic) for topic in self.topology.internal_topics}

    @property
    def written_internal_topics(self) -> list[str]:
        """The internal topics that are written."""
        return [topic for topic in self.writes if topic in self.internal]

    @property
    def reads_external(self) -> bool:
        """True if it reads topics that are not internal to the application."""
        return bool(set(self.reads) - self.internal) or any(
            source.pattern for source in self.sources
        )

    @property
    def suppliers(self) -> list[object]:
        return [node.supplier for node in self.nodes if isinstance(node, ProcessorNode)]

    @property
    def reads_globals(self) -> bool:
        """True if it may read global stores: joins with a key mapper and custom processors may."""
        if not self.application.topology.global_stores:
            return False
        return any(_may_read_globals(supplier) for supplier in self.suppliers)

    @property
    def is_stateless(self) -> bool:
        """True if it is stateless, so that records can be processed anywhere and in any order."""
        stores = any(self.application.topology.connected.get(node.name) for node in self.nodes)
        return not stores and all(
            isinstance(supplier, _KEEP_NOTHING) for supplier in self.suppliers
        )


def _may_read_globals(supplier: object) -> bool:
    if isinstance(supplier, StreamTableJoin):
        return supplier.key_mapper is not None
    # Operators of the DSL access only their own stores, unless they run the user's own transformer.
    is_ours = type(supplier).__module__.startswith("ottla.streams.operators.")
    return not is_ours or isinstance(supplier, TableTransform)


def _is_global(nodes: Iterable[TopologyNode]) -> bool:
    return any(isinstance(node, Source) and node.is_global for node in nodes)


def _parts(application: Application) -> list[_Part]:
    topology = application.topology
    groups = topology.subtopologies()
    globals_ = [node for group in groups if _is_global(group) for node in group]
    parts = []
    for group in groups:
        if _is_global(group):
            continue
        part = _Part(application, group, _cut(topology, group, ()))
        if part.reads_globals:
            part.topology = _cut(topology, [*group, *globals_], topology.global_stores)
        parts.append(part)
    return parts


def _cut(
    topology: Topology, nodes: Iterable[TopologyNode], global_stores: Iterable[str]
) -> Topology:
    """Return a topology with only some nodes and their stores, in the original order."""
    names = {node.name for node in nodes}
    connected = {name: stores for name, stores in topology.connected.items() if name in names}
    used = {store for stores in connected.values() for store in stores}
    return replace(
        topology,
        nodes={name: node for name, node in topology.nodes.items() if name in names},
        stores={name: store for name, store in topology.stores.items() if name in used},
        global_stores={name: topology.global_stores[name] for name in global_stores},
        connected=connected,
    )


def components(application: Application) -> list[Application]:
    """Return the parts of a topology that no internal topic connects, each as a topology of its
    own.
    """
    parts = _parts(application)
    groups: list[list[_Part]] = []
    for part in parts:
        topics = {*part.written_internal_topics, *(set(part.reads) & part.internal)}
        near = [
            group
            for group in groups
            if any(
                topics & {*member.written_internal_topics, *(set(member.reads) & member.internal)}
                for member in group
            )
        ]
        groups = [group for group in groups if group not in near]
        groups.append([*(member for group in near for member in group), part])
    results = []
    for group in sorted(groups, key=lambda members: parts.index(members[0])):
        nodes = [node for part in group for node in part.topology.nodes.values()]
        stores = {store for part in group for store in part.topology.global_stores}
        cut = _cut(application.topology, nodes, sorted(stores))
        results.append(replace(application, topology=cut))
    return results


def lay_out(
    applications: Iterable[Application],
    partition_counts: Mapping[str, int],
    clock_topic: str | None = None,
    claimed: Sequence[int] = (),
) -> Layout:
    """Return the layout; `partition_counts` has the topics' counts on the broker.

    `claimed` are the partition counts of the sub-topologies that a checkpoint has state of: topics
    may have gained partitions since, and more topics may match a pattern. Raises TopologyError if a
    source topic does not exist.
    """
    parts = [part for application in applications for part in _parts(application)]
    if not parts:
        raise TopologyError("the topology reads no topic")
    readers = {topic: part for part in parts for topic in part.reads}
    looped = _set_levels(parts, readers)
    for part in sorted(parts, key=lambda each_part: each_part.level):
        _set_partitions(part, parts, partition_counts)
        if len(claimed) == len(parts) and part.reads_external:
            part.partitions = claimed[parts.index(part)]
    counts = {**partition_counts, **_internal_counts(readers)}
    return _finish(parts, counts, looped, clock_topic)


def _internal_counts(readers: Mapping[str, _Part]) -> dict[str, int]:
    return {topic: part.partitions for topic, part in readers.items() if topic in part.internal}


def _set_levels(parts: list[_Part], readers: Mapping[str, _Part]) -> set[str]:
    """Set the levels; return the internal topics that close a cycle."""
    order: list[_Part] = []
    looped: set[str] = set()
    entered: list[_Part] = []

    def visit(part: _Part) -> None:
        entered.append(part)
        for topic in part.written_internal_topics:
            reader = readers.get(topic)
            if reader in entered and reader not in order:
                looped.add(topic)
            elif reader is not None and reader not in entered:
                visit(reader)
        order.append(part)

    for part in parts:
        if part not in entered:
            visit(part)
    for part in parts:
        part.level = 0 if part.is_stateless and not part.reads_globals else 1
    for part in reversed(order):
        for topic in part.written_internal_topics:
            if topic in readers and topic not in looped:
                readers[topic].level = max(readers[topic].level, part.level + 1)
    return looped


def _set_partitions(part: _Part, parts: list[_Part], counts: Mapping[str, int]) -> None:
    results = []
    for source in part.sources:
        if source.pattern is not None:
            matching = [topic for topic in counts if re.fullmatch(source.pattern, topic)]
            results += [counts[topic] for topic in matching] or [1]
    for topic in part.reads:
        if topic in counts:
            results.append(counts[topic])
        elif topic not in part.internal:
            raise TopologyError(
                f"topic {topic} is read but does not exist; create it before the application starts"
            )
    fixed_counts = part.application.topology.internal_topics
    fixed = [
        fixed_counts[topic]
        for source in part.sources
        for topic in source.topics
        if topic in fixed_counts
    ]
    results += [count for count in fixed if count is not None]
    # As in Kafka: the partition count of the sub-topology that writes the repartition topic.
    writers = [writer.partitions for writer in parts if set(writer.writes) & set(part.reads)]
    part.partitions = max(results or writers or [1])


def _finish(
    parts: list[_Part], counts: Mapping[str, int], looped: set[str], clock_topic: str | None
) -> Layout:
    sub_topologies: list[SubTopology] = []
    routes: dict[str, tuple[TaskRoute, ...]] = {}
    patterns: list[tuple[str, TaskRoute]] = []
    shuffled: dict[str, int] = {}
    for number, part in enumerate(parts):
        first = sub_topologies[-1].tasks.stop if sub_topologies else 0
        settings = replace(part.application.settings, partitions_of=counts)
        application = replace(part.application, settings=settings)
        sub_topologies.append(
            SubTopology(application, part.topology, part.level, part.partitions, first)
        )
        read_counts = {counts[topic] for topic in part.reads if topic in counts}
        # If the numbers of partitions are multiples of the number of tasks, because topics have
        # grown, `partition % tasks` is still the task of a key.
        is_by_key = len(read_counts) > 1 and any(count % part.partitions for count in read_counts)
        route = TaskRoute(number, Routing.BY_KEY if is_by_key else Routing.BY_PARTITION)
        for topic in part.reads:
            if topic in part.internal and topic not in looped:
                shuffled[topic] = number
            else:
                routes[topic] = (*routes.get(topic, ()), route)
        patterns += [
            (source.pattern, route) for source in part.sources if source.pattern is not None
        ]
        for node in part.topology.nodes.values():
            if isinstance(node, Source) and node.is_global:
                to_all = TaskRoute(number, Routing.TO_ALL)
                routes[node.topics[0]] = (*routes.get(node.topics[0], ()), to_all)
    created = {topic: counts[topic] for topic in looped}
    clocked = (
        tuple(n for n, sub_topology in enumerate(sub_topologies) if sub_topology.level)
        if clock_topic
        else ()
    )
    return Layout(
        tuple(sub_topologies), routes, tuple(patterns), shuffled, created, clock_topic, clocked
    )

"""Explains how a topology runs on Spark: where each node runs, the shuffles, the topics on the
broker.
"""

from collections.abc import Iterator, Mapping

from ottla.client.doors import open_door
from ottla.streams.expressions.columns import OfSpark
from ottla.streams.layout.layout import (
    Application,
    Layout,
    Routing,
    SubTopology,
    components,
    lay_out,
)
from ottla.streams.spark.catalyst.steps import SparkType, expressions_of, lower_layout
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Sink, Source, Topology, TopologyNode, visible_stores

_ROUTINGS = {
    Routing.BY_PARTITION: "to the task of the record's partition",
    Routing.BY_KEY: "by key: the topics of this sub-topology have different numbers of partitions",
    Routing.TO_ALL: "to every task: a global topic",
}


def explain(
    topology: Topology,
    *,
    application_id: str = "app",
    partitions: Mapping[str, int] | None = None,
    settings: TaskSettings | None = None,
) -> str:
    """Return the explanation; topics that are not in `partitions` are assumed to have one
    partition.

    `settings` are the application's, in case it has default serdes of its own.

    Each node is marked Python or JVM. Stores and all functions of the topology run in Python.
    Spark's shuffles, its state store, and the Column expressions that Spark evaluates as Python
    does run in the JVM. Expressions that run in Python are listed with the reason.
    """
    application = Application(topology, settings or TaskSettings(application_id))
    partition_counts = dict.fromkeys(_read(topology), 1) | dict(partitions or {})
    marks = _marks(application, partition_counts)
    layout = lay_out([application], partition_counts)
    lines: list[str] = []
    for number, sub_topology in enumerate(layout.sub_topologies):
        lines += _stage(number, sub_topology)
        lines += [f"  {arrival}" for arrival in _arrivals(layout, number)]
        lines += [
            f"  {_node(sub_topology, node, marks)}" for node in sub_topology.topology.nodes.values()
        ]
    lines += [
        f"Topic {topic} stays on the broker: it closes a cycle" for topic in sorted(layout.created)
    ]
    return "\n".join(lines) + "\n"


def _read(topology: Topology) -> Iterator[str]:
    for node in topology.nodes.values():
        if isinstance(node, Source):
            yield from (topic for topic in node.topics if topic not in topology.internal_topics)


def _stage(number: int, sub_topology: SubTopology) -> Iterator[str]:
    tasks = f"{sub_topology.partitions} task{'s' * (sub_topology.partitions != 1)}"
    stage = (
        f"stage {sub_topology.level}: transformWithState"
        if sub_topology.level
        else "where the source is read"
    )
    yield f"Sub-topology {number}: {stage}, {tasks}"
    for name in visible_stores(sub_topology.topology):
        if name in sub_topology.topology.stores:
            yield f"  Store {name}: Python, its pages in Spark's state store (JVM)"


def _arrivals(layout: Layout, number: int) -> Iterator[str]:
    for topic, routes in sorted(layout.routes.items()):
        for route in routes:
            if route.sub_topology_number == number:
                moved = "Shuffle (JVM)" if layout.sub_topologies[number].level else "Read"
                yield f"{moved}: topic {topic}, {_ROUTINGS[route.routing]}"
    for topic, target in sorted(layout.shuffled.items()):
        if target == number:
            moved = "Shuffle (JVM)" if layout.sub_topologies[number].level else "Forwarded"
            yield f"{moved}: {topic}, by key: no topic on the broker"


def _marks(application: Application, partition_counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each node whether it runs in the JVM, or in Python and why."""
    marks: dict[str, str] = {}
    for component in components(application):
        layout = lay_out([component], partition_counts)
        for lowered in lower_layout(layout, _spark_type(component)) or []:
            marks |= {name: "JVM" for name in lowered.nodes if name not in marks}
            marks |= {name: f"Python ({why})" for name, why in lowered.reasons.items()}
            if lowered.types is not None:
                # Records are fetched and decoded to columns in Python.
                marks.setdefault(lowered.source.name, "Python, its records go to the JVM")
        if layout.levels:
            mark = "Python (it is in a stateful query)"
            marks |= {
                node.name: mark
                for node in component.topology.nodes.values()
                if expressions_of(node)
            }
    return marks


def _spark_type(application: Application) -> SparkType | None:
    nodes = application.topology.nodes.values()
    if not any(
        isinstance(expression, OfSpark) for node in nodes for expression in expressions_of(node)
    ):
        return None
    frames = open_door("ottla.streams.spark.catalyst.frame", "pyspark", "ottla[spark]")
    result: SparkType = frames.active_spark_types()
    return result


def _node(sub_topology: SubTopology, node: TopologyNode, marks: Mapping[str, str]) -> str:
    mark = marks.get(node.name, "Python")
    if isinstance(node, Source):
        return f"{node.name}: {mark}, reads topic {', '.join(node.topics) or node.pattern}"
    if isinstance(node, Sink):
        name = sub_topology.application.topic_name
        topic = (
            f"topic {name(node.topic)}"
            if isinstance(node.topic, str)
            else "the topic of a function"
        )
        return f"{node.name}: {mark}, writes to {topic}"
    results = [str(expression) for expression in expressions_of(node)]
    return f"{node.name}: {mark}{', an expression: ' + ', '.join(results) if results else ''}"

"""What a topology becomes on Spark: where each node runs, what is shuffled, what is a topic on the broker."""

from collections.abc import Iterator, Mapping

from ottla.streams.columns import Evaluated
from ottla.streams.runtime import TaskSettings
from ottla.streams.spark.layout import Application, Feed, Kind, Layout, lay_out
from ottla.streams.topology import ProcessorNode, Sink, Source, Topology, TopologyNode

_FEEDS = {
    Feed.BY_PARTITION: "to the task of the record's partition",
    Feed.BY_KEY: "by key: the topics of this sub-topology have different numbers of partitions",
    Feed.TO_ALL: "to every task: a global topic",
}


def explain(
    topology: Topology,
    *,
    application_id: str = "app",
    partitions: Mapping[str, int] | None = None,
) -> str:
    """Return the explanation; topics that `partitions` does not name are taken to have one.

    Each node is marked Python or JVM: records, stores and every function of the pipeline are in Python, Spark's
    shuffles and its state store in the JVM.
    """
    application = Application(topology, TaskSettings(application_id))
    known = dict.fromkeys(_read(topology), 1) | dict(partitions or {})
    layout = lay_out([application], known)
    lines: list[str] = []
    for number, kind in enumerate(layout.kinds):
        lines += _stage(number, kind)
        lines += [f"  {each}" for each in _arrivals(layout, number)]
        lines += [f"  {_node(kind, node)}" for node in kind.topology.nodes.values()]
    lines += [
        f"Topic {topic} stays on the broker: it leads back to where it comes from"
        for topic in sorted(layout.created)
    ]
    return "\n".join(lines) + "\n"


def _read(topology: Topology) -> Iterator[str]:
    for node in topology.nodes.values():
        if isinstance(node, Source):
            yield from (each for each in node.topics if each not in topology.internal_topics)


def _stage(number: int, kind: Kind) -> Iterator[str]:
    tasks = f"{kind.partitions} task{'s' * (kind.partitions != 1)}"
    place = f"stage {kind.level}: transformWithState" if kind.level else "where the source is read"
    yield f"Sub-topology {number}: {place}, {tasks}"
    for name in kind.topology.stores:
        yield f"  Store {name}: Python, its pages in Spark's state store (JVM)"


def _arrivals(layout: Layout, number: int) -> Iterator[str]:
    for topic, routes in sorted(layout.routes.items()):
        for route in routes:
            if route.kind == number:
                moved = "Shuffle (JVM)" if layout.kinds[number].level else "Read"
                yield f"{moved}: topic {topic}, {_FEEDS[route.feed]}"
    for topic, kind in sorted(layout.shuffled.items()):
        if kind == number:
            moved = "Shuffle (JVM)" if layout.kinds[number].level else "Handed on"
            yield f"{moved}: {topic}, by key: no topic on the broker"


def _node(kind: Kind, node: TopologyNode) -> str:
    if isinstance(node, Source):
        return f"{node.name}: Python, reads {', '.join(node.topics) or node.pattern}"
    if isinstance(node, Sink):
        name = kind.application.topic_name
        topic = name(node.topic) if isinstance(node.topic, str) else "the topic of a function"
        return f"{node.name}: Python, writes {topic}"
    return f"{node.name}: Python{_expression(node)}"


def _expression(node: ProcessorNode) -> str:
    """Return the Column expression of a node, if it is made of one."""
    held = vars(node.supplier).values() if hasattr(node.supplier, "__dict__") else ()
    found = [str(each.column) for each in held if isinstance(each, Evaluated)]
    return f", an expression: {', '.join(found)}" if found else ""

"""Flows: streams and tables as positions in the graph, and the steps that only depend on them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.operators.views import View, store_view
from ottla.streams.processor.api import StreamPartitioner, Supplier
from ottla.streams.serdes import Serde
from ottla.streams.topology.plan import Graph, OperatorNode, RepartitionNode

_NUMBERED = "KSTREAM"


@dataclass(frozen=True)
class StreamFlow:
    """A stream: its current step, its serdes, and whether its key changed since it was read."""

    graph: Graph
    name: str
    node: str
    """The parent of the next step; differs from `name` for a shared repartition topic."""
    key: Serde[Any] | None
    value: Serde[Any] | None
    repartition_required: bool = False

    def check_same(self, other: "StreamFlow | TableFlow") -> None:
        """Raise TopologyError if the other flow belongs to another StreamsBuilder."""
        if other.graph is not self.graph:
            raise TopologyError(
                "streams and tables of different builders cannot be combined: use one StreamsBuilder"
            )

    def then(self, name: str, operator: Supplier, **changes: Any) -> "StreamFlow":
        """Add an operator and return its output stream."""
        self.graph.add(OperatorNode(name, (self.node,), operator))
        return replace(self, name=name, node=name, **changes)


@dataclass
class TableFlow:
    """A table: its current step, its serdes, and how other operators read its values."""

    graph: Graph
    name: str
    key: Serde[Any] | None
    value: Serde[Any] | None
    store_name: str | None
    """The name of its store for interactive queries; None if it has none."""
    open_view: Callable[[], View]
    enable: Callable[[bool], bool]
    """Requests old values from the operator; True as the argument materializes a store if
    necessary.
    """
    _sends_old_values: bool = field(default=False, init=False)

    def view(self) -> View:
        """Return the view through which other operators read the table; materializes it if
        necessary.
        """
        return self.open_view()

    def enable_sending_old_values(self, force: bool) -> bool:
        """Request old values; return True if they will be sent."""
        if not self._sends_old_values:
            self._sends_old_values = self.enable(force)
        return self._sends_old_values


def source_table(
    graph: Graph, name: str, serdes: tuple[Serde[Any] | None, Serde[Any] | None], queryable: bool
) -> TableFlow:
    """Return the table of a TableSource step; it is materialized when an operator first reads it."""
    store_name: str = graph.operator(name).store.name

    def open_view() -> View:
        graph.change_operator(name, materialized=True)
        return store_view(store_name)

    def enable(force: bool) -> bool:
        if not force and not graph.operator(name).materialized:
            return False
        graph.change_operator(name, materialized=True, send_old_values=True)
        return True

    queryable_name = store_name if queryable else None
    return TableFlow(graph, name, *serdes, queryable_name, open_view, enable)


def sending(graph: Graph, *names: str) -> Callable[[bool], bool]:
    """Return a function that requests old values from operators that can always send them."""

    def enable(_force: bool) -> bool:
        for name in names:
            graph.change_operator(name, send_old_values=True)
        return True

    return enable


@dataclass(frozen=True)
class Repartition:
    """The names of a repartition topic and of the steps around it."""

    topic: str
    sink: str
    key_filter: str
    source: str


def name_repartition(graph: Graph, prefix: str) -> Repartition:
    """Return the names of a repartition topic and its steps; a numbered topic has numbered steps."""
    check_name(prefix, "a repartition topic")
    topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
    check_name(topic, "a repartition topic")
    sink = graph.new_name("KSTREAM-SINK-")
    key_filter = graph.new_name("KSTREAM-FILTER-")
    source = graph.new_name("KSTREAM-SOURCE-")
    if prefix.startswith(_NUMBERED) and prefix[-11:-10] == "-" and prefix[-10:].isdigit():
        return Repartition(topic, sink, key_filter, source)
    return Repartition(topic, f"{topic}-sink", f"{topic}-filter", f"{topic}-source")


def repartition_node(
    names: Repartition,
    parent: str,
    serdes: tuple[Serde[Any] | None, Serde[Any] | None],
    partitioner: StreamPartitioner | None = None,
    partitions: int | None = None,
) -> RepartitionNode:
    """Return the step that writes to a repartition topic and reads it back."""
    return RepartitionNode(
        names.source,
        (parent,),
        topic=names.topic,
        sink=names.sink,
        key_filter=names.key_filter,
        key=serdes[0],
        value=serdes[1],
        partitioner=partitioner,
        partitions=partitions,
    )

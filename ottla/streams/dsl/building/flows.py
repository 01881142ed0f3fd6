"""Flows: a stream or a table as the graph knows it, and the steps that need nothing else."""

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
    """A stream: the step it comes from, its serdes, and whether its key changed since its topic."""

    graph: Graph
    name: str
    node: str
    """The step below which the next one stands; differs from `name` for a shared repartition."""
    key: Serde[Any] | None
    value: Serde[Any] | None
    repartition_required: bool = False

    def check_same(self, other: "StreamFlow | TableFlow") -> None:
        """TopologyError for what another builder made."""
        if other.graph is not self.graph:
            raise TopologyError("these come of two builders; make both of one StreamsBuilder")

    def then(self, name: str, operator: Supplier, **changes: Any) -> "StreamFlow":
        """Add an operator and return the stream that it makes."""
        self.graph.add(OperatorNode(name, (self.node,), operator))
        return replace(self, name=name, node=name, **changes)


@dataclass
class TableFlow:
    """A table: the step it comes from, its serdes, and how others read it."""

    graph: Graph
    name: str
    key: Serde[Any] | None
    value: Serde[Any] | None
    store_name: str | None
    """The name of its store, if the user may ask for it."""
    open_view: Callable[[], View]
    enable: Callable[[bool], bool]
    """Asks the operator to send old values; the argument: even if a store must be made for it."""
    _sends_old_values: bool = field(default=False, init=False)

    def view(self) -> View:
        """Return how others read the table; a table that nobody kept is kept from now on."""
        return self.open_view()

    def enable_sending_old_values(self, force: bool) -> bool:
        """Ask for old values; return whether they will be sent."""
        if not self._sends_old_values:
            self._sends_old_values = self.enable(force)
        return self._sends_old_values


def source_table(
    graph: Graph, name: str, serdes: tuple[Serde[Any] | None, Serde[Any] | None], queryable: bool
) -> TableFlow:
    """Return the table that a TableSource step makes; it is kept once somebody reads it."""
    store_name: str = graph.operator(name).store.name

    def open_view() -> View:
        graph.change_operator(name, materialized=True)
        return store_view(store_name)

    def enable(force: bool) -> bool:
        if not force and not graph.operator(name).materialized:
            return False
        graph.change_operator(name, materialized=True, send_old_values=True)
        return True

    shown = store_name if queryable else None
    return TableFlow(graph, name, *serdes, shown, open_view, enable)


def sending(graph: Graph, *names: str) -> Callable[[bool], bool]:
    """Return what asks operators for old values that can always send them."""

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
    """Name a repartition topic; the steps are named after it unless it has a numbered name."""
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
    """Return the step that writes to a repartition topic and reads it again."""
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

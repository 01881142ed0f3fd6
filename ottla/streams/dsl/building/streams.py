"""Steps of streams: branches, merges, repartitions, sinks and conversions to tables."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ottla.streams.dsl.building.flows import (
    StreamFlow,
    TableFlow,
    name_repartition,
    repartition_node,
    source_table,
)
from ottla.streams.expressions.arity import refuse_async, with_context, with_key
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.operators.stateless import Branch, PassThrough, Peek, SelectKey
from ottla.streams.operators.tables import TableSource
from ottla.streams.options.dsl_options import Materialized, Named, Printed, Produced, Repartitioned
from ottla.streams.processor.api import (
    Supplier,
    TopicNameExtractor,
    check_supplier,
    supplied_stores,
)
from ottla.streams.topology.plan import OperatorNode, SinkNode


def select_key(flow: StreamFlow, mapper: Any, name: str | None) -> StreamFlow:
    """Add a step that sets new keys."""
    operator = SelectKey(with_key(mapper, 2, "a key selector"))
    named = flow.graph.named(name, "KSTREAM-KEY-SELECT-")
    return flow.then(named, operator, key=None, repartition_required=True)


def merge(flow: StreamFlow, other: StreamFlow, name: str | None) -> StreamFlow:
    """Add a step that merges two streams."""
    if not isinstance(other, StreamFlow):
        raise TopologyError(f"a stream is merged with a stream, not with {other!r}")
    flow.check_same(other)
    named = flow.graph.named(name, "KSTREAM-MERGE-")
    flow.graph.add(OperatorNode(named, (flow.node, other.node), PassThrough()))
    required = flow.repartition_required or other.repartition_required
    return replace(
        flow,
        name=named,
        node=named,
        key=flow.key if flow.key == other.key else None,
        value=flow.value if flow.value == other.value else None,
        repartition_required=required,
    )


def repartition(flow: StreamFlow, options: Repartitioned[Any, Any]) -> StreamFlow:
    """Add an explicit repartition topic."""
    prefix = options.name
    if prefix is None:
        prefix = flow.graph.new_name("KSTREAM-REPARTITION-")
    serdes = options.key or flow.key, options.value or flow.value
    names = name_repartition(flow.graph, prefix)
    node = repartition_node(names, flow.node, serdes, options.partitioner, options.partitions)
    flow.graph.add(node)
    return StreamFlow(flow.graph, names.source, names.source, *serdes)


def to(flow: StreamFlow, topic: str | TopicNameExtractor, options: Produced[Any, Any]) -> None:
    """Add a sink."""
    name = flow.graph.named(options.name, "KSTREAM-SINK-")
    if isinstance(topic, str):
        check_name(topic, "a topic")
    target = topic if isinstance(topic, str) else with_context(topic, "a topic name extractor")
    refuse_async(options.partitioner, "a partitioner")
    serdes = options.key or flow.key, options.value or flow.value
    flow.graph.add(SinkNode(name, (flow.node,), target, *serdes, options.partitioner))


def print_records(flow: StreamFlow, options: Printed) -> None:
    """Add a step that prints the records; this ends the stream."""
    label = options.label or flow.name
    mapper = options.mapper or (lambda key, value: f"{key}, {value}")
    shows = with_key(mapper, 2, "a mapper")

    def show(key: Any, value: Any) -> None:
        sys.stdout.write(f"[{label}]: {shows(key, value)}\n")
        sys.stdout.flush()

    def write(key: Any, value: Any) -> None:
        with open(options.path or "", "a", encoding="utf-8") as file:
            file.write(f"[{label}]: {shows(key, value)}\n")

    named = flow.graph.named(options.name, "KSTREAM-PRINTER-")
    flow.then(named, Peek(show if options.path is None else write, ends=True))


def to_table(flow: StreamFlow, materialized: Materialized[Any, Any], name: str | None) -> TableFlow:
    """Add a step that converts a stream to a table, with a repartition topic if its key changed."""
    graph = flow.graph
    named = graph.named(name, "KSTREAM-TOTABLE-")
    store_name = materialized.name or graph.new_store_name("KSTREAM-TOTABLE-")
    serdes = materialized.key or flow.key, materialized.value or flow.value
    parent = flow.node
    if flow.repartition_required:
        names = name_repartition(graph, named)
        graph.add(repartition_node(names, flow.node, serdes))
        parent = names.source
    queryable = materialized.name is not None
    store = replace(materialized.builder("timestamped_key_value", store_name))
    store = replace(store, key=serdes[0], value=serdes[1])
    operator = TableSource(store, materialized=queryable)
    graph.add(OperatorNode(named, (parent,), operator, output_versioned=store.kind == "versioned"))
    return source_table(graph, named, serdes, queryable)


def split(flow: StreamFlow, name: str | None) -> str:
    """Add a step that distributes records to branches; return its name."""
    named = flow.graph.named(name, "KSTREAM-BRANCH-")
    flow.graph.add(OperatorNode(named, (flow.node,), Branch()))
    return named


def branch(flow: StreamFlow, splitter: str, predicate: Any, name: str | None) -> StreamFlow:
    """Add a branch; without a predicate it is the default branch."""
    operator: Branch = flow.graph.operator(splitter)
    if predicate is None:
        child = splitter + (name or "0")
        flow.graph.change_operator(splitter, default_child=child)
    else:
        tests = with_key(predicate, 2, "a predicate")
        child = splitter + (name or str(len(operator.predicates) + 1))
        flow.graph.change_operator(
            splitter,
            predicates=(*operator.predicates, tests),
            children=(*operator.children, child),
        )
    flow.graph.new_name("KSTREAM-BRANCH-")
    flow.graph.add(OperatorNode(child, (splitter,), PassThrough()))
    return replace(flow, name=child, node=child)


def process(
    flow: StreamFlow,
    supplier: Supplier,
    stores: Sequence[str | Named],
    name: str | None,
) -> StreamFlow:
    """Add a processor, which may change keys; a Named may be among the stores, as in Kafka Streams."""
    named = _add_processor(flow, supplier, stores, (name, "KSTREAM-PROCESSOR-"))
    return StreamFlow(flow.graph, named, named, None, None, True)


def process_values(
    flow: StreamFlow,
    supplier: Supplier,
    stores: Sequence[str | Named],
    name: str | None,
) -> StreamFlow:
    """Add a processor that cannot change keys."""
    named = _add_processor(flow, supplier, stores, (name, "KSTREAM-PROCESSVALUES-"))
    return replace(flow, name=named, node=named, value=None)


def _add_processor(
    flow: StreamFlow,
    supplier: Supplier,
    stores: Sequence[str | Named],
    naming: tuple[str | None, str],
) -> str:
    check_supplier(supplier, "a stream's processor")
    for store in supplied_stores(supplier):
        check_name(store.name, "a store")
    for option in stores:
        if not isinstance(option, str | Named):
            raise TopologyError(
                f"a processor is connected to stores by their names, not by {option!r}"
            )
    name = naming[0]
    if name is None:
        name = next((store.name for store in stores if isinstance(store, Named)), None)
    # Here a name given by the user takes no number, as in Kafka.
    named = flow.graph.new_name(naming[1]) if name is None else name
    check_name(named, "an operator")
    connected = tuple(store for store in stores if not isinstance(store, Named))
    flow.graph.add(OperatorNode(named, (flow.node,), supplier, connected))
    return named

"""Lowers a plan to the topology that a task runs: each step becomes nodes and stores."""

from functools import singledispatch

from ottla.streams.model.errors import TopologyError
from ottla.streams.operators.stateless import KeyFilter, PassThrough
from ottla.streams.processor.api import supplied_stores
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.plan import (
    GlobalStoreNode,
    OperatorNode,
    Plan,
    PlanNode,
    RepartitionNode,
    SinkNode,
    SourceNode,
    StoreNode,
)
from ottla.streams.topology.topology import Source, Topology


def lower(plan: Plan) -> Topology:
    """Return the topology of a plan."""
    _check_stores(plan)
    topology = Topology()
    for node in plan.nodes:
        _lower(node, topology)
    topology.copartitioned.extend(plan.copartitioned)
    topology.check_copartitioning({})
    return topology


def _check_stores(plan: Plan) -> None:
    """Raise TopologyError if two steps describe different stores with the same name.

    Steps that share a store, such as the sides of a join and the parts of a cogroup, share its
    description.
    """
    owners: dict[str, tuple[str, StoreBuilder]] = {}
    for node in plan.nodes:
        if not isinstance(node, OperatorNode):
            continue
        for store in supplied_stores(node.operator):
            owner, first_store = owners.setdefault(store.name, (node.name, store))
            if first_store is not store:
                raise TopologyError(
                    f"store {store.name} already belongs to {owner}; give the store of {node.name} another name"
                )


@singledispatch
def _lower(node: PlanNode, topology: Topology) -> None:
    raise TypeError(f"no lowering of {type(node).__name__}")


@_lower.register
def _lower_source(node: SourceNode, topology: Topology) -> None:
    topology.add(_source(node))


def _source(node: SourceNode, *, is_global: bool = False) -> Source:
    return Source(
        node.name,
        node.topics,
        node.pattern,
        node.key,
        node.value,
        node.timestamp_extractor,
        node.offset_reset,
        is_global,
    )


@_lower.register
def _lower_operator(node: OperatorNode, topology: Topology) -> None:
    topology.add_processor(node.name, node.operator, *node.parents)
    if node.stores:
        topology.connect_processor_and_state_stores(node.name, *node.stores)


@_lower.register
def _lower_repartition(node: RepartitionNode, topology: Topology) -> None:
    topology.internal_topics[node.topic] = node.partitions
    parents = node.parents
    if node.key_filter is not None:
        supplier = PassThrough() if node.keeps_null_keys else KeyFilter()
        topology.add_processor(node.key_filter, supplier, *parents)
        parents = (node.key_filter,)
    topology.add_sink(
        node.sink,
        node.topic,
        *parents,
        key=node.key,
        value=node.value,
        partitioner=node.partitioner,
        carries_changes=node.carries_changes,
    )
    topology.add(
        Source(
            node.name,
            (node.topic,),
            key=node.key,
            value=node.value,
            carries_changes=node.carries_changes,
        )
    )


@_lower.register
def _lower_sink(node: SinkNode, topology: Topology) -> None:
    if node.internal and isinstance(node.topic, str):
        topology.internal_topics[node.topic] = None
    topology.add_sink(
        node.name,
        node.topic,
        *node.parents,
        key=node.key,
        value=node.value,
        partitioner=node.partitioner,
    )


@_lower.register
def _lower_global_store(node: GlobalStoreNode, topology: Topology) -> None:
    source = _source(node.source, is_global=True)
    topology.add_global(node.store, source, node.processor, node.supplier)


@_lower.register
def _lower_store(node: StoreNode, topology: Topology) -> None:
    topology.add_state_store(node.store)

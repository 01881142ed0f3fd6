"""StreamsBuilder, the entry point of the DSL: it creates streams and tables from topics."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ottla.streams.dsl.building.flows import StreamFlow, source_table
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.dsl.misplaced_serdes import explains_serdes
from ottla.streams.expressions.arity import refuse_async
from ottla.streams.expressions.functions import K2 as K
from ottla.streams.expressions.functions import V2 as V
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.operators.tables import TableSource
from ottla.streams.operators.views import global_view
from ottla.streams.options.dsl_options import (
    Consumed,
    Materialized,
    TableOptions,
    of_kind,
    options_of,
)
from ottla.streams.processor.api import Supplier, TimestampExtractor, check_supplier
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.lowering import lower
from ottla.streams.topology.plan import (
    GlobalStoreNode,
    Graph,
    OperatorNode,
    Plan,
    SourceNode,
)
from ottla.streams.topology.topology import Topology

Topics = str | Iterable[str] | re.Pattern[str]


@explains_serdes
class StreamsBuilder(SnakeCase):
    """Builds a topology from streams and tables; `build()` returns the Topology."""

    def __init__(self) -> None:
        self._graph = Graph(KStream)

    def stream(
        self,
        topics: Topics,
        consumed: Consumed[K, V] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        timestamp: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Create a stream from a topic, several topics, or all topics that match a pattern."""
        defaults = of_kind(consumed, Consumed, "how a topic is read")
        options = defaults or Consumed(key, value, timestamp, offset_reset, name)
        named = self._graph.named(options.name, "KSTREAM-SOURCE-")
        node = _source(named, topics, options)
        self._graph.add(replace(node, mergeable=True))
        return KStream(StreamFlow(self._graph, named, named, options.key, options.value))

    def table(
        self,
        topic: str,
        consumed: Consumed[K, V] | Materialized[K, V] | None = None,
        materialized: TableOptions[K, V] = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        timestamp: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Create a table from a topic: each record is an update of the value of its key."""
        graph, defaults = self._graph, Consumed(key, value, timestamp, None, name)
        options, stored = _table_options(topic, consumed, materialized, defaults)
        store_name = stored.name or graph.new_store_name(f"{topic}-")
        source = graph.named(options.name, "KSTREAM-SOURCE-", "-source")
        named = graph.named(options.name, "KTABLE-SOURCE-")
        graph.add(_source(source, topic, options))
        store = stored.builder("timestamped_key_value", store_name)
        store = replace(store, key=options.key, value=options.value)
        queryable = stored.name is not None
        operator = TableSource(store, materialized=queryable)
        versioned = store.kind == "versioned"
        graph.add(OperatorNode(named, (source,), operator, output_versioned=versioned))
        return KTable(source_table(graph, named, (options.key, options.value), queryable))

    def global_table(
        self,
        topic: str,
        consumed: Consumed[K, V] | Materialized[K, V] | None = None,
        materialized: TableOptions[K, V] = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        timestamp: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> GlobalKTable[K, V]:
        """Create a table from all partitions of a topic; every task has a full copy."""
        graph, defaults = self._graph, Consumed(key, value, timestamp, None, name)
        options, stored = _table_options(topic, consumed, materialized, defaults)
        store_name = stored.name or graph.new_store_name(f"{topic}-")
        store = stored.builder("timestamped_key_value", store_name)
        if store.kind == "versioned":
            raise TopologyError("global tables cannot be versioned")
        store = replace(store, key=options.key, value=options.value)
        self._add_global(topic, options, store, TableSource(store, materialized=True))
        return GlobalKTable(global_view(store_name), store_name)

    def add_global_store(
        self,
        store: StoreBuilder,
        topic: str,
        supplier: Supplier | Consumed[Any, Any],
        consumed: Consumed[Any, Any] | Supplier | None = None,
    ) -> "StreamsBuilder":
        """Add a store that a processor fills from a whole topic and that every processor may read.

        The processor and `consumed` may be given in either order, as in Kafka Streams.
        """
        if isinstance(supplier, Consumed):
            supplier, consumed = consumed, supplier  # type: ignore[assignment]
        if not isinstance(store, StoreBuilder):
            raise TopologyError(
                f"a global store is a description such as Stores.key_value('name'), not {store!r}"
            )
        if not callable(supplier) or not isinstance(consumed, Consumed | None):
            raise TopologyError(
                "a global store is filled by a processor; how it is read is a Consumed"
            )
        check_supplier(supplier, "a global store's processor")
        self._add_global(topic, consumed or Consumed(store.key, store.value), store, supplier)
        return self

    def _add_global(
        self,
        topic: str,
        options: Consumed[Any, Any],
        store: StoreBuilder,
        supplier: Supplier,
    ) -> None:
        graph = self._graph
        source = graph.named(options.name, "KSTREAM-SOURCE-", "-source")
        named = graph.named(options.name, "KTABLE-SOURCE-")
        node = _source(source, topic, options)
        graph.add(GlobalStoreNode(named, (), node, named, supplier, store))

    def add_state_store(self, store: StoreBuilder) -> "StreamsBuilder":
        """Add a state store; processors connect to it by its name."""
        self._graph.add_store(store)
        return self

    def plan(self) -> Plan:
        """Return the logical plan of the streams and tables built so far."""
        return self._graph.plan()

    def build(self, config: Mapping[str, Any] | None = None) -> Topology:
        """Return the Topology. `config` is accepted as in Kafka Streams and has no effect."""
        return lower(self.plan())


def _source(name: str, topics: Topics, options: Consumed[Any, Any]) -> SourceNode:
    if isinstance(topics, re.Pattern):
        topics_and_pattern: tuple[tuple[str, ...], str | None] = ((), topics.pattern)
    else:
        listed = (
            (topics,) if isinstance(topics, str) or not isinstance(topics, Iterable) else topics
        )
        topics_and_pattern = tuple(dict.fromkeys(listed)), None
        if not topics_and_pattern[0] or not all(
            isinstance(topic, str) for topic in topics_and_pattern[0]
        ):
            raise TopologyError(
                f"a stream reads a topic, several topics or all that match a pattern, not {topics!r}"
            )
        for topic in topics_and_pattern[0]:
            check_name(topic, "a topic")
    refuse_async(options.timestamp_extractor, "a timestamp extractor")
    extractor, reset = options.timestamp_extractor, options.offset_reset
    if reset not in (None, "earliest", "latest"):
        raise TopologyError(f"a source starts at earliest or latest, not at {reset!r}")
    return SourceNode(name, (), *topics_and_pattern, options.key, options.value, extractor, reset)


def _table_options(
    topic: str,
    consumed: Consumed[K, V] | Materialized[K, V] | None,
    materialized: TableOptions[K, V],
    defaults: Consumed[K, V],
) -> tuple[Consumed[K, V], Materialized[K, V]]:
    """Return the Consumed and the Materialized of a table.

    `consumed` may be a Materialized, as in Kafka Streams.
    """
    if not isinstance(topic, str):
        raise TopologyError(f"a table is read from one topic, not from {topic!r}")
    if isinstance(consumed, Materialized):
        consumed, materialized = None, consumed
    stored = options_of(materialized, None)[1] or Materialized()
    options = of_kind(consumed, Consumed, "how a topic is read") or defaults
    return replace(
        options, key=options.key or stored.key, value=options.value or stored.value
    ), stored

"""Steps of tables: filters, mappings, groupings, suppress, and joins by key or foreign key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ottla.streams.dsl.building.flows import StreamFlow, TableFlow, source_table
from ottla.streams.dsl.building.groups import TableGroupFlow
from ottla.streams.dsl.emitting import Suppressed
from ottla.streams.dsl.misplaced_serdes import refuse_serdes
from ottla.streams.expressions.arity import (
    check_arity,
    chooses_partition,
    evaluated,
    makes_pair,
    with_key,
)
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.model.records import NO_TIMESTAMP, ValueAndTimestamp
from ottla.streams.operators.foreign_key import (
    RESPONSE_SERDE,
    SUBSCRIPTION_SERDE,
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
    TableSerdes,
    results_store,
    to_asking_partition,
)
from ottla.streams.operators.stateless import ToStream
from ottla.streams.operators.suppress import Suppress
from ottla.streams.operators.table_joins import TableJoin, TableJoinMerge
from ottla.streams.operators.tables import (
    TableMap,
    TableRepartitionMap,
    TableSource,
    TableTransform,
    ValueTransformer,
)
from ottla.streams.operators.views import (
    Getter,
    TimestampedValue,
    View,
    derived_getter,
    mapped_view,
    store_view,
)
from ottla.streams.options.dsl_options import Grouped, Materialized, Named, options_of
from ottla.streams.options.joins import TableJoined
from ottla.streams.processor.api import (
    ProcessorContext,
    StreamPartitioner,
    check_supplier,
    supplied_stores,
)
from ottla.streams.serdes import Serde, Serdes
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.plan import OperatorNode, SinkNode, SourceNode

AnyMaterialized = Materialized[Any, Any]


def _result_store(
    materialized: AnyMaterialized | None, key: Serde[Any] | None, value: Serde[Any] | None
) -> StoreBuilder | None:
    if materialized is None or materialized.name is None:
        return None
    store = materialized.builder("timestamped_key_value", materialized.name)
    return replace(store, key=store.key or key, value=store.value or value)


def _output_versioned(
    materialized: AnyMaterialized | None, store: StoreBuilder | None
) -> bool | None:
    if materialized is None:
        return None
    return store is not None and store.kind == "versioned"


def _derived(
    parent: TableFlow,
    name: str,
    serdes: tuple[Serde[Any] | None, Serde[Any] | None],
    store: StoreBuilder | None,
    unkept_view: Callable[[], View],
) -> TableFlow:
    """Return the table of a step that processes its parent's changes one by one."""
    graph = parent.graph

    def enable(force: bool) -> bool:
        if store is None and not parent.enable_sending_old_values(force):
            return bool(graph.operator(name).send_old_values)
        graph.change_operator(name, send_old_values=True)
        return True

    queryable_name = None if store is None else store.name

    def open_view() -> View:
        return unkept_view() if store is None else store_view(store.name)

    return TableFlow(graph, name, *serdes, queryable_name, open_view, enable)


def filter_table(
    table: TableFlow,
    predicate: Any,
    negate: bool,
    name: str | None,
    materialized: AnyMaterialized | None,
) -> TableFlow:
    """Add a filter; entries that do not satisfy the predicate are deleted from the result."""
    graph, test = table.graph, with_key(predicate, 2, "a predicate")
    if materialized is not None and materialized.name is None:
        graph.new_store_name("KTABLE-FILTER-")
    store = _result_store(materialized, table.key, table.value)
    named = graph.named(name, "KTABLE-FILTER-")
    sends_old = table.enable_sending_old_values(False)

    def kept(key: Any, value: Any) -> Any:
        return value if bool(test(key, value)) != negate else None

    operator = TableMap(kept, store, sends_old, drops_unseen=True)
    versioned = _output_versioned(materialized, store)
    graph.add(OperatorNode(named, (table.name,), operator, output_versioned=versioned))

    def entry(key: Any, result: TimestampedValue) -> TimestampedValue | None:
        return result if kept(key, result.value) is not None else None

    key = (materialized and materialized.key) or table.key
    value = (materialized and materialized.value) or table.value
    return _derived(table, named, (key, value), store, lambda: mapped_view(table.view(), entry))


def map_values(
    table: TableFlow, mapper: Any, name: str | None, materialized: AnyMaterialized | None
) -> TableFlow:
    """Add a step that replaces the values of entries."""
    graph, maps = table.graph, with_key(mapper, 2, "a value mapper")
    if materialized is not None and materialized.name is None:
        graph.new_store_name("KTABLE-MAPVALUES-")
    store = _result_store(materialized, table.key, None)
    named = graph.named(name, "KTABLE-MAPVALUES-")
    # The operator ignores whether its parent is versioned, as Kafka's mapValues does.
    operator = TableMap(maps, store)
    versioned = _output_versioned(materialized, store)
    graph.add(OperatorNode(named, (table.name,), operator, output_versioned=versioned))

    def entry(key: Any, result: TimestampedValue) -> TimestampedValue | None:
        value = maps(key, result.value)
        return None if value is None else ValueAndTimestamp(value, result.timestamp)

    key = (materialized and materialized.key) or table.key
    value = None if materialized is None else materialized.value
    return _derived(table, named, (key, value), store, lambda: mapped_view(table.view(), entry))


def transform_values(
    table: TableFlow,
    supplier: Callable[[], ValueTransformer],
    stores: tuple[str, ...],
    name: str | None,
    materialized: AnyMaterialized | None,
) -> TableFlow:
    """Add a step that replaces the values of entries, with access to stores."""
    check_supplier(supplier, "a table's transformer", "transform")
    graph = table.graph
    store = _result_store(materialized, table.key, None)
    named = graph.named(name, "KTABLE-TRANSFORMVALUES-")
    operator = TableTransform(supplier, store)
    versioned = _output_versioned(materialized, store)
    node = OperatorNode(named, (table.name,), operator, stores, output_versioned=versioned)
    graph.add(node)

    def open_view() -> View:
        above = table.view()

        def open_transformer(context: ProcessorContext) -> Getter:
            transformer = supplier()
            transformer.init(context)
            current = context.add_part(transformer)

            def derive(key: Any, result: TimestampedValue | None) -> TimestampedValue | None:
                # The view also calls the transformer for missing keys: it may return a value for
                # them.
                value = current().transform(key, None if result is None else result.value)
                timestamp = NO_TIMESTAMP if result is None else result.timestamp
                return None if value is None else ValueAndTimestamp(value, timestamp)

            return derived_getter(above.open(context), derive)

        brought = (supplied_store.name for supplied_store in supplied_stores(supplier))
        return View((*above.stores, *stores, *brought), open_transformer)

    key = (materialized and materialized.key) or table.key
    value = None if materialized is None else materialized.value
    return _derived(table, named, (key, value), store, open_view)


def to_stream(table: TableFlow, name: str | None) -> StreamFlow:
    """Add a step that converts changes to records."""
    named = table.graph.named(name, "KTABLE-TOSTREAM-")
    table.graph.add(OperatorNode(named, (table.name,), ToStream()))
    return StreamFlow(table.graph, named, named, table.key, table.value)


def group_by(table: TableFlow, selector: Any, grouped: Grouped[Any, Any]) -> TableGroupFlow:
    """Add a step that sets the group's key and value of entries."""
    graph = table.graph
    named = graph.named(grouped.name, "KTABLE-SELECT-")
    selects = makes_pair(selector, "a selector of key and value")
    operator = TableRepartitionMap(selects, grouped.key)
    graph.add(OperatorNode(named, (table.name,), operator))
    table.enable_sending_old_values(True)
    return TableGroupFlow(graph, named, grouped.key, grouped.value, grouped.name)


def suppress(table: TableFlow, suppressed: Suppressed) -> TableFlow:
    """Add a step that buffers changes."""
    graph = table.graph
    if graph.is_versioned(table.name):
        raise TopologyError(
            "a versioned table cannot be suppressed: call suppress after to_stream().to_table()"
        )
    name = graph.new_name("KTABLE-SUPPRESS-") if suppressed.name is None else suppressed.name
    check_name(name, "an operator")
    until_close = suppressed.wait_ms is None
    wait_ms = (
        graph.window_grace_ms(table.name) if suppressed.wait_ms is None else suppressed.wait_ms
    )
    buffer_name = (
        graph.new_store_name("KTABLE-SUPPRESS-")
        if suppressed.name is None
        else f"{suppressed.name}-store"
    )
    buffer = StoreBuilder(buffer_name, "suppress_buffer", table.key, table.value)
    table.enable_sending_old_values(True)
    operator = Suppress(
        buffer,
        wait_ms,
        until_close,
        suppressed.buffer.max_records_count,
        suppressed.buffer.max_bytes_count,
        suppressed.buffer.fails_when_full,
        suppressed.idle_timeout_ms,
        suppressed.on_late,
    )
    graph.add(OperatorNode(name, (table.name,), operator, output_versioned=False))

    def open_view() -> View:
        above = table.view()

        def open_buffered(context: ProcessorContext) -> Getter:
            return _BufferedGetter(above.open(context), context.store(buffer_name))

        return View((buffer_name, *above.stores), open_buffered)

    enable = table.enable_sending_old_values
    return TableFlow(graph, name, table.key, table.value, None, open_view, enable)


class _BufferedGetter:
    """Reads a suppressed table: buffered changes are not visible."""

    versioned = False

    def __init__(self, above: Getter, buffer: Any) -> None:
        self._above = above
        self._buffer = buffer

    def get(self, key: Any) -> TimestampedValue | None:
        return self._read(key, self._above.get)

    def get_forwarded(self, key: Any) -> TimestampedValue | None:
        return self._read(key, self._above.get_forwarded)

    def _read(
        self, key: Any, read_above: Callable[[Any], TimestampedValue | None]
    ) -> TimestampedValue | None:
        waits, prior = self._buffer.prior_value(key)
        if not waits:
            return read_above(key)
        # The timestamp of the previous value is not stored, as in Kafka.
        return None if prior is None else ValueAndTimestamp(prior, -1)


def join_tables(
    table: TableFlow,
    other: TableFlow,
    outer: tuple[bool, bool],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> TableFlow:
    """Add a join by key (joiner) or by foreign key (extractor, joiner); options follow in any
    order.
    """
    if arguments and arguments[0] is None:
        raise TypeError(
            "after the other table comes a function, a joiner or a foreign-key extractor, not None"
        )
    names = ("extractor", "joiner", "joined", "materialized", "named")
    refuse_serdes(keywords, "a join of tables", "materialized=Materialized.with_(key, value)")
    for keyword in keywords:
        if keyword not in names:
            raise TypeError(f"a join of tables takes {', '.join(names)}, not {keyword}")
    named = {
        function_name: [keywords[function_name]] if function_name in keywords else []
        for function_name in names[:2]
    }
    options: list[Any] = []
    functions: list[Any] = []
    for argument in arguments:
        is_function = callable(argument) or evaluated(argument) is not None
        (functions if is_function else options).append(argument)
    options = [option for option in options if option is not None]
    functions = [*named["extractor"], *functions, *named["joiner"]]
    joined = keywords.get("joined") or _only(options, TableJoined)
    table_option = keywords.get("materialized") or _only(options, Materialized, str)
    name, materialized = options_of(table_option, keywords.get("named") or _only(options, Named))
    name = joined.name if joined is not None else name
    if options or len(functions) not in (1, 2) or (len(functions) == 2 and outer[1]):
        raise TopologyError(
            "tables are joined with (table, joiner) by key, or with (table, extractor, joiner) by a foreign "
            "key; Named, Materialized and TableJoined may come after"
        )
    if other.graph is not table.graph:
        raise TopologyError(
            "tables of different builders cannot be combined: use one StreamsBuilder"
        )
    if len(functions) == 1:
        return join(table, other, functions[0], outer, name, materialized)
    join_options = replace(joined or TableJoined(), name=name), materialized or Materialized()
    extractor, joiner = functions
    return join_on_foreign_key(table, other, extractor, joiner, outer[0], join_options)


def _only(options: list[Any], *kinds: type) -> Any:
    """Remove the first option of the given types from a list and return it."""
    for option in options:
        if isinstance(option, kinds):
            options.remove(option)
            return option
    return None


def join(
    table: TableFlow,
    other: TableFlow,
    joiner: Callable[[Any, Any], Any],
    outer: tuple[bool, bool],
    name: str | None,
    materialized: AnyMaterialized | None,
) -> TableFlow:
    """Add a join by key; `outer` is whether left and right entries without a match are kept."""
    check_arity(joiner, 2, "a joiner")
    graph, (left_outer, right_outer) = table.graph, outer
    store = None
    if materialized is not None:
        store_name = materialized.name or graph.new_store_name("KTABLE-MERGE-")
        store = materialized.builder("timestamped_key_value", store_name)
        store = replace(store, key=store.key or table.key)
    merged = graph.named(name, "KTABLE-MERGE-")
    if left_outer:
        table.enable_sending_old_values(True)
    if right_outer:
        other.enable_sending_old_values(True)
    views = table.view(), other.view()
    this_join = TableJoin(*views, joiner, not right_outer, not left_outer)
    other_join = TableJoin(
        views[1], views[0], lambda right, left: joiner(left, right), not left_outer, not right_outer
    )
    names = (
        graph.named(name, "KTABLE-JOINTHIS-", "-join-this"),
        graph.named(name, "KTABLE-JOINOTHER-", "-join-other"),
    )
    graph.add(OperatorNode(names[0], (table.name,), this_join, views[1].stores))
    graph.add(OperatorNode(names[1], (other.name,), other_join, views[0].stores))
    versioned = store is not None and store.kind == "versioned"
    node = OperatorNode(merged, names, TableJoinMerge(store), output_versioned=versioned)
    graph.add(node)
    graph.copartition(table.name, other.name)

    def enable(_force: bool) -> bool:
        for parent in (table, other):
            parent.enable_sending_old_values(True)
        for each_name in (*names, merged):
            graph.change_operator(each_name, send_old_values=True)
        return True

    def open_view() -> View:
        return this_join.view() if store is None else store_view(store.name)

    key = table.key if store is None else store.key
    value = None if materialized is None else materialized.value
    queryable_name = None if store is None else store.name
    return TableFlow(graph, merged, key, value, queryable_name, open_view, enable)


def join_on_foreign_key(
    table: TableFlow,
    other: TableFlow,
    extractor: Any,
    joiner: Callable[[Any, Any], Any],
    left: bool,
    options: tuple[TableJoined, AnyMaterialized],
) -> TableFlow:
    """Add a join by a foreign key, which the extractor returns for each entry of the left table."""
    check_arity(joiner, 2, "a joiner")
    graph, joined = table.graph, options[0]
    other.enable_sending_old_values(True)
    table.enable_sending_old_values(True)

    def named(suffix: str, prefix: str) -> str:
        return graph.named(joined.name, prefix, suffix)

    step = "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-"
    topic = (
        named("-subscription-registration", "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-") + "-topic"
    )
    this = TableSerdes(table.key, table.value, f"{topic}-pk", f"{topic}-vh")
    that = TableSerdes(other.key, other.value, f"{topic}-fk")
    send_name = named(
        "-subscription-registration-processor", "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-"
    )
    extracts = with_key(extractor, 2, "a foreign key extractor")
    # The store is named after its own step, so that numbers are assigned in Kafka's order.
    results = None if left else results_store(f"{send_name}-results-store", table.key)
    send = SubscriptionSend(extracts, results, this, that)
    graph.add(OperatorNode(send_name, (table.name,), send))
    sink = named("-subscription-registration-sink", "KTABLE-SINK-")
    source = named("-subscription-registration-source", "KTABLE-SOURCE-")
    asks = other.key, SUBSCRIPTION_SERDE
    partitioner = _of_keys(joined.other_partitioner, calls_without_key=left)
    graph.add(SinkNode(sink, (send_name,), topic, *asks, partitioner, internal=True))
    graph.add(SourceNode(source, (sink,), (topic,), None, *asks))
    store_name = named("-subscription-store", "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-")
    store = StoreBuilder(store_name, "timestamped_key_value", Serdes.bytes(), SUBSCRIPTION_SERDE)
    receive_name = named("-subscription-receive", step)
    graph.add(OperatorNode(receive_name, (source,), SubscriptionReceive(store, that)))
    other_view = other.view()
    join_name = named("-subscription-join-foreign", step)
    foreign_name = named("-foreign-join-subscription", step)
    response_topic = (
        named("-subscription-response", "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-") + "-topic"
    )
    that = replace(that, value_topic=response_topic)
    subscription_join = SubscriptionJoin(other_view, this, that)
    graph.add(OperatorNode(join_name, (receive_name,), subscription_join, other_view.stores))
    graph.add(OperatorNode(foreign_name, (other.name,), ForeignTableJoin(store, this, that)))
    answer_sink = named("-subscription-response-sink", "KTABLE-SINK-")
    answer_source = named("-subscription-response-source", "KTABLE-SOURCE-")
    serdes = table.key, RESPONSE_SERDE
    parents = (join_name, foreign_name)
    graph.add(
        SinkNode(answer_sink, parents, response_topic, *serdes, to_asking_partition, internal=True)
    )
    graph.add(SourceNode(answer_source, (answer_sink,), (response_topic,), None, *serdes))
    view = table.view()
    response_name = named(
        "-subscription-response-resolver",
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-",
    )
    response = ResponseJoin(view, joiner, results, this, that)
    graph.add(OperatorNode(response_name, (answer_source,), response, view.stores))
    return _foreign_key_result(table, response_name, options)


def _of_keys(
    partitioner: StreamPartitioner | None, *, calls_without_key: bool
) -> StreamPartitioner | None:
    """Return a partitioner that gets only keys: the values on the internal topics are not the
    table's.

    Kafka's inner join has no subscriptions without a foreign key, so its partitioner may not expect
    them.
    """
    chosen = chooses_partition(partitioner)
    if chosen is None:
        return None

    def partition(topic: str, key: Any, _value: Any, count: int) -> Any:
        if key is None and not calls_without_key:
            return None
        return chosen(topic, key, None, count)

    return partition


def _foreign_key_result(
    table: TableFlow, response_name: str, options: tuple[TableJoined, AnyMaterialized]
) -> TableFlow:
    graph, (joined, materialized) = table.graph, options
    name = graph.named(joined.name, "KTABLE-FK-JOIN-OUTPUT-", "-result")
    store_name = materialized.name or graph.new_store_name("KTABLE-FK-JOIN-OUTPUT-")
    store = materialized.builder("timestamped_key_value", store_name)
    store = replace(store, key=store.key or table.key)
    queryable = materialized.name is not None
    versioned = store.kind == "versioned"
    operator = TableSource(store, materialized=queryable)
    graph.add(OperatorNode(name, (response_name,), operator, output_versioned=versioned))
    return source_table(graph, name, (store.key, store.value), queryable)

"""Steps of grouped streams and tables: aggregations, windowed or not, and cogroups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.streams.dsl.building.flows import (
    StreamFlow,
    TableFlow,
    name_repartition,
    repartition_node,
    sending,
)
from ottla.streams.expressions.arity import check_arity, with_key
from ottla.streams.model.durations import milliseconds
from ottla.streams.model.names import check_name
from ottla.streams.model.windows import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from ottla.streams.operators.aggregates import (
    Aggregator,
    Initializer,
    StreamAggregate,
    TableAggregate,
)
from ottla.streams.operators.sessions import Merger, SessionAggregate
from ottla.streams.operators.sliding import SlidingAggregate
from ottla.streams.operators.stateless import PassThrough
from ottla.streams.operators.views import View, session_view, store_view, window_view
from ottla.streams.operators.windowed import OnLate, WindowAggregate
from ottla.streams.options.dsl_options import Materialized
from ottla.streams.serdes import Serde, Serdes, over_default
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.plan import Graph, OperatorNode, RepartitionNode

AnyWindows = TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows
TableOptions = tuple[str | None, Materialized[Any, Any] | None]
"""An operator's name and the Materialized of its table."""


def count_initializer() -> int:
    """Return the initial count, 0."""
    return 0


def count_aggregator(_key: Any, _value: Any, aggregate: int) -> int:
    """Add 1 to the count."""
    return aggregate + 1


def count_subtractor(_key: Any, _value: Any, aggregate: int) -> int:
    """Subtract 1 from the count."""
    return aggregate - 1


def no_initializer() -> None:
    """Return None, the initial aggregate of a reduction."""


def reducing(reducer: Callable[[Any, Any], Any]) -> Aggregator:
    """Return the aggregator of a reducer; the first value is the initial aggregate."""
    check_arity(reducer, 2, "a reducer")
    return lambda _key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


@dataclass
class GroupFlow:
    """A grouped stream; a named repartition topic is shared by all aggregations of the group."""

    flow: StreamFlow
    repartition_name: str | None
    shared: RepartitionNode | None = field(default=None, init=False)

    def parent(self, store_name: str) -> str:
        """Return the parent of an aggregation: a repartition topic, if needed, or the grouped
        stream.
        """
        flow, graph = self.flow, self.flow.graph
        if not flow.repartition_required:
            return flow.node
        prefix = store_name if self.repartition_name is None else self.repartition_name
        names = name_repartition(graph, prefix)
        if self.shared is None or self.repartition_name is None:
            self.shared = repartition_node(names, flow.node, (flow.key, flow.value))
        graph.add(self.shared)
        return self.shared.name


@dataclass(frozen=True)
class Aggregation:
    """The options of an aggregation: its Materialized, its name, and the prefix of generated names."""

    prefix: str
    """Kafka's prefix of the operator and its store."""
    materialized: Materialized[Any, Any]
    named: str | None
    takes_extra_number: bool = False
    """Kafka's count with a Materialized uses one number more, to be compatible with old topologies."""

    @classmethod
    def of(
        cls, prefix: str, table_options: TableOptions, *, takes_extra_number: bool = False
    ) -> "Aggregation":
        """Return the options of an aggregation, with defaults."""
        name, materialized = table_options
        return cls(prefix, materialized or Materialized(), name, takes_extra_number)

    def names(self, graph: Graph) -> tuple[str, str]:
        """Return the names of the store and of the operator, in Kafka's order."""
        if self.takes_extra_number and self.materialized.name is None:
            graph.new_store_name(self.prefix)
        store = self.materialized.name or graph.new_store_name(self.prefix)
        return store, graph.named(self.named, self.prefix)


def aggregate(
    group: GroupFlow,
    aggregation: Aggregation,
    initializer: Initializer | None,
    aggregator: Aggregator,
    value: Serde[Any] | None,
) -> TableFlow:
    """Add an aggregation without windows."""
    graph = group.flow.graph
    store_name, name = aggregation.names(graph)
    store = aggregation.materialized.builder("timestamped_key_value", store_name)
    store = replace(store, key=store.key or group.flow.key, value=store.value or value)
    parent = group.parent(store_name)
    operator = StreamAggregate(store, initializer, aggregator)
    versioned = store.kind == "versioned"
    graph.add(OperatorNode(name, (parent,), operator, output_versioned=versioned))
    queryable_name = aggregation.materialized.name
    view = store_view(store_name)
    return TableFlow(
        graph, name, store.key, store.value, queryable_name, lambda: view, sending(graph, name)
    )


@dataclass(frozen=True)
class WindowSpec:
    """The windows of an aggregation, when it emits, and the callback for late records."""

    windows: AnyWindows
    on_close: bool = False
    on_late: OnLate | None = None
    idle_timeout_ms: int | None = None
    """The wall-clock time without records after which windows that emit on close are closed."""

    @property
    def grace_period_ms(self) -> int:
        """The time in ms after the end of a window during which its result may change."""
        if isinstance(self.windows, SessionWindows):
            return self.windows.grace_period_ms + self.windows.inactivity_gap_ms
        return self.windows.grace_period_ms

    def store(self, materialized: Materialized[Any, Any], name: str) -> StoreBuilder:
        """Return the description of the store of these windows."""
        windows = self.windows
        length = (
            windows.inactivity_gap_ms if isinstance(windows, SessionWindows) else windows.size_ms
        )
        # A record in a sliding window may need a window that starts twice its length before it.
        needed = 2 * length if isinstance(windows, SlidingWindows) else length
        shortest = needed + windows.grace_period_ms
        retention = materialized.retention
        retention_ms = shortest if retention is None else milliseconds(retention)
        if retention_ms < shortest:
            raise ValueError(
                f"store {name} keeps windows for {retention_ms} ms; "
                f"their length and grace are {shortest} ms"
            )
        kind = "session" if isinstance(windows, SessionWindows) else "timestamped_window"
        return replace(
            materialized.builder(kind, name),
            retention_ms=retention_ms,
            window_size_ms=length,
            by_time=self.on_close,
        )

    def view(self, store_name: str) -> View:
        """Return the view through which other operators read a table of these windows."""
        is_session = isinstance(self.windows, SessionWindows)
        return session_view(store_name) if is_session else window_view(store_name)

    def key_serde(self, key: Serde[Any] | None) -> Serde[Any]:
        """Return the serde of windowed keys."""
        return over_default(self._windowed) if key is None else self._windowed(key)

    def _windowed(self, key: Serde[Any]) -> Serde[Any]:
        if isinstance(self.windows, SessionWindows):
            return Serdes.session_windowed(key)
        return Serdes.time_windowed(key, self.windows.size_ms)

    def operator(
        self,
        store: StoreBuilder,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger | None,
    ) -> Any:
        """Return the operator that aggregates these windows."""
        arguments: dict[str, Any] = {
            "windows": self.windows,
            "store": store,
            "initializer": initializer,
            "aggregator": aggregator,
            "on_close": self.on_close,
            "on_late": self.on_late,
            "idle_timeout_ms": self.idle_timeout_ms if self.on_close else None,
        }
        if isinstance(self.windows, SessionWindows):
            assert merger is not None, "sessions are merged"
            return SessionAggregate(merger=merger, **arguments)
        is_sliding = isinstance(self.windows, SlidingWindows)
        return (SlidingAggregate if is_sliding else WindowAggregate)(**arguments)


@dataclass(frozen=True)
class Fold:
    """The functions of an aggregation; sessions also have a merger of two aggregates."""

    initializer: Initializer
    aggregator: Aggregator = count_aggregator
    """Not used by a cogroup, whose streams have one each."""
    merger: Merger | None = None
    value: Serde[Any] | None = None


@dataclass(frozen=True)
class Grouping:
    """A grouped stream with its windows, if any, and the aggregations of it."""

    group: GroupFlow
    spec: WindowSpec | None = None

    def emitting(self, **changes: Any) -> "Grouping":
        """Return a copy that emits in another way. Raises ValueError if the windows never close."""
        assert self.spec is not None, "windows emit"
        if changes.get("on_close") and isinstance(self.spec.windows, UnlimitedWindows):
            raise ValueError("unlimited windows never close; emit on window update")
        return replace(self, spec=replace(self.spec, **changes))

    def count(self, table_options: TableOptions) -> TableFlow:
        """Count the records of each key."""

        def merge(_key: Any, first_count: int, second_count: int) -> int:
            return first_count + second_count

        fold = Fold(count_initializer, count_aggregator, merge, Serdes.long())
        extra = table_options[1] is not None
        aggregation = Aggregation.of("KSTREAM-AGGREGATE-", table_options, takes_extra_number=extra)
        return self._add(aggregation, fold)

    def reduce(self, reducer: Callable[[Any, Any], Any], table_options: TableOptions) -> TableFlow:
        """Combine the values of each key; the first value is the initial aggregate."""
        reduces = reducing(reducer)

        def merge(key: Any, first_value: Any, second_value: Any) -> Any:
            return reduces(key, second_value, first_value)

        fold = Fold(no_initializer, reduces, merge, self.group.flow.value)
        return self._add(Aggregation.of("KSTREAM-REDUCE-", table_options), fold)

    def aggregate(
        self, initializer: Initializer, aggregator: Any, merger: Any, table_options: TableOptions
    ) -> TableFlow:
        """Aggregate the values of each key."""
        check_arity(initializer, 0, "an initializer")
        merges = None if merger is None else with_key(merger, 3, "a merger")
        fold = Fold(initializer, with_key(aggregator, 3, "an aggregator"), merges)
        return self._add(Aggregation.of("KSTREAM-AGGREGATE-", table_options), fold)

    def _add(self, aggregation: Aggregation, fold: Fold) -> TableFlow:
        if self.spec is not None:
            return windowed_aggregate(self.group, aggregation, self.spec, fold)
        starts = None if fold.initializer is no_initializer else fold.initializer
        return aggregate(self.group, aggregation, starts, fold.aggregator, fold.value)


def windowed_aggregate(
    group: GroupFlow, aggregation: Aggregation, spec: WindowSpec, fold: Fold
) -> TableFlow:
    """Add an aggregation by window."""
    graph = group.flow.graph
    store_name, name = aggregation.names(graph)
    store = spec.store(aggregation.materialized, store_name)
    store = replace(store, key=store.key or group.flow.key, value=store.value or fold.value)
    parent = group.parent(store_name)
    operator = spec.operator(store, fold.initializer, fold.aggregator, fold.merger)
    node = OperatorNode(
        name,
        (parent,),
        operator,
        output_versioned=False,
        grace_period_ms=spec.grace_period_ms,
    )
    graph.add(node)
    view = spec.view(store_name)
    return TableFlow(
        graph,
        name,
        spec.key_serde(store.key),
        store.value,
        aggregation.materialized.name,
        lambda: view,
        sending(graph, name),
    )


@dataclass(frozen=True)
class TableGroupFlow:
    """A grouped table: a stream of changes by the key of the group."""

    graph: Graph
    node: str
    key: Serde[Any] | None
    value: Serde[Any] | None
    name: str | None
    shared: list[RepartitionNode] = field(default_factory=list)

    def count(self, table_options: TableOptions) -> TableFlow:
        """Count the entries of each group."""
        folds = count_initializer, count_aggregator, count_subtractor
        aggregation = Aggregation.of("KTABLE-AGGREGATE-", table_options)
        return aggregate_table(self, aggregation, folds, Serdes.long())

    def reduce(self, adder: Any, subtractor: Any, table_options: TableOptions) -> TableFlow:
        """Combine the values of each group."""
        check_arity(adder, 2, "an adder")
        check_arity(subtractor, 2, "a subtractor")

        def add(_key: Any, value: Any, aggregate: Any) -> Any:
            return adder(aggregate, value)

        def subtract(_key: Any, value: Any, aggregate: Any) -> Any:
            return subtractor(aggregate, value)

        aggregation = Aggregation.of("KTABLE-REDUCE-", table_options)
        return aggregate_table(self, aggregation, (None, add, subtract), self.value)

    def aggregate(
        self, folds: tuple[Initializer, Any, Any], table_options: TableOptions
    ) -> TableFlow:
        """Aggregate the values of each group."""
        initializer, adder, subtractor = folds
        check_arity(initializer, 0, "an initializer")
        adds, subtracts = with_key(adder, 3, "an adder"), with_key(subtractor, 3, "a subtractor")
        aggregation = Aggregation.of("KTABLE-AGGREGATE-", table_options)
        return aggregate_table(self, aggregation, (initializer, adds, subtracts), None)


def aggregate_table(
    group: TableGroupFlow,
    aggregation: Aggregation,
    folds: tuple[Initializer | None, Aggregator, Aggregator],
    value: Serde[Any] | None,
) -> TableFlow:
    """Add an aggregation of a grouped table and its repartition topic."""
    graph = group.graph
    store_name = aggregation.materialized.name or graph.new_store_name("KTABLE-AGGREGATE-")
    sink = graph.named(aggregation.named, "KSTREAM-SINK-", "-sink")
    source = graph.named(aggregation.named, "KSTREAM-SOURCE-", "-source")
    name = graph.named(aggregation.named, aggregation.prefix)
    topic = f"{store_name if group.name is None else group.name}-repartition"
    check_name(topic, "a repartition topic")
    if not group.shared or group.name is None:
        graph.change_operator(group.node, topic=topic)
        node = RepartitionNode(
            source,
            (group.node,),
            topic=topic,
            sink=sink,
            key=group.key,
            value=group.value,
            carries_changes=True,
        )
        group.shared[:] = [node]
    shared = group.shared[0]
    graph.add(shared)
    store = aggregation.materialized.builder("timestamped_key_value", store_name)
    store = replace(store, key=store.key or group.key, value=store.value or value)
    operator = TableAggregate(store, *folds)
    versioned = store.kind == "versioned"
    graph.add(OperatorNode(name, (shared.name,), operator, output_versioned=versioned))
    queryable_name = aggregation.materialized.name
    view = store_view(store_name)
    return TableFlow(
        graph, name, store.key, store.value, queryable_name, lambda: view, sending(graph, name)
    )


CogroupPart = tuple[GroupFlow, Aggregator]


def aggregate_cogroup(
    parts: Sequence[CogroupPart],
    initializer: Initializer,
    merger: Any,
    table_options: TableOptions,
    spec: WindowSpec | None,
) -> TableFlow:
    """Add the aggregations of several grouped streams to one table."""
    check_arity(initializer, 0, "an initializer")
    graph = parts[0][0].flow.graph
    prefix = "COGROUPKSTREAM-AGGREGATE-"
    aggregation = Aggregation.of(prefix, table_options)
    fold = Fold(initializer, merger=None if merger is None else with_key(merger, 3, "a merger"))
    store_name = aggregation.materialized.name or graph.new_store_name(prefix)
    if spec is None:
        store = aggregation.materialized.builder("timestamped_key_value", store_name)
    else:
        store = spec.store(aggregation.materialized, store_name)
    store = replace(store, key=store.key or parts[0][0].flow.key, value=store.value or fold.value)
    parents = [group.parent(store_name) for group, _ in parts]
    names = []
    for number, (parent, (_, aggregator)) in enumerate(zip(parents, parts, strict=True)):
        name = graph.named(aggregation.named, prefix, f"-cogroup-agg-{number}")
        names.append(name)
        operator: Any
        if spec is None:
            operator = StreamAggregate(store, fold.initializer, aggregator)
        else:
            operator = spec.operator(store, fold.initializer, aggregator, fold.merger)
        grace = None if spec is None else spec.grace_period_ms
        graph.add(OperatorNode(name, (parent,), operator, grace_period_ms=grace))
    merged = graph.named(aggregation.named, "COGROUPKSTREAM-MERGE-", "-cogroup-merge")
    graph.add(OperatorNode(merged, tuple(names), PassThrough()))
    graph.copartition(*parents)
    key = store.key if spec is None else spec.key_serde(store.key)
    view = store_view(store_name) if spec is None else spec.view(store_name)
    return TableFlow(
        graph,
        merged,
        key,
        store.value,
        aggregation.materialized.name,
        lambda: view,
        sending(graph, *names),
    )

"""The DSL: streams, tables and groups, with the operators of Kafka Streams in snake_case.

These types know one another, so they stand in one file; each operator only says what it adds to the plan
(`building/`). Functions take the value, or the key and the value. Every operator takes `named`; those that
keep a table take `materialized`, a name or a Materialized.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, overload

from ottla.streams.arity import with_key
from ottla.streams.building import groups, joins, streams, tables
from ottla.streams.building.flows import StreamFlow
from ottla.streams.durations import Duration, milliseconds
from ottla.streams.kstream import StreamOperators
from ottla.streams.ktable import GlobalKTable, TableOperators
from ottla.streams.operators import stateless
from ottla.streams.operators.tables import ValueTransformer
from ottla.streams.operators.windowed import OnLate
from ottla.streams.options import (
    EmitStrategy,
    Grouped,
    Joined,
    Kept,
    Materialized,
    Name,
    Of1Or2,
    Of2Or3,
    StreamJoined,
    TableJoined,
    name_of,
)
from ottla.streams.processor import ProcessorSupplier
from ottla.streams.records import Windowed
from ottla.streams.serdes import Serde, Serdes
from ottla.streams.spelling import SnakeCase
from ottla.streams.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
R = TypeVar("R")


class KStream(StreamOperators[K, V], Generic[K, V]):
    """A stream of records: each is a fact of its own."""

    def select_key(self, selector: Of1Or2[K2], *, named: Name = None) -> "KStream[K2, V]":
        """Give each record a new key."""
        return KStream(streams.select_key(self.flow, selector, name_of(named)))

    def map(self, mapper: Of1Or2[tuple[K2, V2]], *, named: Name = None) -> "KStream[K2, V2]":
        """Make a new key and value of each record."""
        operator = stateless.Map(with_key(mapper, 2, "a mapper"))
        changes = {"key": None, "value": None, "repartition_required": True}
        return KStream(self._then(named, "MAP", operator, **changes))

    def map_values(self, mapper: Of1Or2[V2], *, named: Name = None) -> "KStream[K, V2]":
        """Give each record a new value."""
        operator = stateless.MapValues(with_key(mapper, 2, "a value mapper"))
        return KStream(self._then(named, "MAPVALUES", operator, value=None))

    def flat_map(
        self, mapper: Of1Or2[Iterable[tuple[K2, V2]]], *, named: Name = None
    ) -> "KStream[K2, V2]":
        """Make any number of new keys and values of each record."""
        operator = stateless.FlatMap(with_key(mapper, 2, "a mapper"))
        changes = {"key": None, "value": None, "repartition_required": True}
        return KStream(self._then(named, "FLATMAP", operator, **changes))

    def flat_map_values(
        self, mapper: Of1Or2[Iterable[V2]], *, named: Name = None
    ) -> "KStream[K, V2]":
        """Make any number of values of each record's value."""
        operator = stateless.FlatMapValues(with_key(mapper, 2, "a value mapper"))
        return KStream(self._then(named, "FLATMAPVALUES", operator, value=None))

    def to_table(self, materialized: Kept = None, *, named: Name = None) -> "KTable[K, V]":
        """Read the stream as a table: the last record of each key counts."""
        return KTable(streams.to_table(self.flow, Materialized.of(materialized), name_of(named)))

    def process(
        self, supplier: ProcessorSupplier, *stores: str, named: Name = None
    ) -> "KStream[Any, Any]":
        """Hand the records to a processor, which may forward any others."""
        name = name_of(named) or self.flow.graph.new_name("KSTREAM-PROCESSOR-")
        return KStream(streams.process(self.flow, supplier, stores, name))

    def process_values(
        self, supplier: ProcessorSupplier, *stores: str, named: Name = None
    ) -> "KStream[K, Any]":
        """Hand the records to a processor that keeps their keys."""
        name = name_of(named) or self.flow.graph.new_name("KSTREAM-PROCESSVALUES-")
        return KStream(streams.process_values(self.flow, supplier, stores, name))

    def group_by(
        self,
        selector: Of1Or2[K2],
        grouped: Grouped[K2, V] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K2, V]":
        """Group the records by a new key."""
        options = grouped or Grouped(key, value, name)
        flow = streams.select_key(self.flow, selector, options.name)
        flow = replace(flow, key=options.key, value=options.value or self.flow.value)
        return KGroupedStream(groups.GroupFlow(flow, options.name))

    def group_by_key(
        self,
        grouped: Grouped[K, V] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K, V]":
        """Group the records by their key."""
        options = grouped or Grouped(key, value, name)
        serdes = options.key or self.flow.key, options.value or self.flow.value
        flow = replace(self.flow, key=serdes[0], value=serdes[1])
        return KGroupedStream(groups.GroupFlow(flow, options.name))

    @overload
    def join(
        self,
        other: "KStream[K, Any]",
        joiner: Of2Or3[R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self, other: "KTable[K, Any]", joiner: Of2Or3[R], joined: Joined[K, V] | None = None
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: "GlobalKTable[Any, Any]",
        selector: Of1Or2[Any],
        joiner: Of2Or3[R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    def join(self, other: Any, *arguments: Any, **options: Any) -> "KStream[K, Any]":
        """Join with a stream within windows, with a table, or with a global table by any key."""
        return KStream(_join(self.flow, other, (False, False), *arguments, **options))

    @overload
    def left_join(
        self,
        other: "KStream[K, Any]",
        joiner: Of2Or3[R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self, other: "KTable[K, Any]", joiner: Of2Or3[R], joined: Joined[K, V] | None = None
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: "GlobalKTable[Any, Any]",
        selector: Of1Or2[Any],
        joiner: Of2Or3[R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    def left_join(self, other: Any, *arguments: Any, **options: Any) -> "KStream[K, Any]":
        """Join as `join` does; records without a partner are joined with None."""
        return KStream(_join(self.flow, other, (True, False), *arguments, **options))

    def outer_join(
        self,
        other: "KStream[K, Any]",
        joiner: Of2Or3[R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]":
        """Join with a stream; records of either without a partner are joined with None."""
        return KStream(_join(self.flow, other, (True, True), joiner, windows, joined))


def _join(
    flow: StreamFlow, other: Any, outer: tuple[bool, bool], *arguments: Any, **options: Any
) -> StreamFlow:
    if isinstance(other, GlobalKTable):
        return _join_global_table(flow, other, outer[0], *arguments, **options)
    if isinstance(other, KTable):
        return _join_table(flow, other, outer[0], *arguments, **options)
    return _join_stream(flow, other, outer, *arguments, **options)


def _join_stream(
    flow: StreamFlow,
    other: KStream[Any, Any],
    outer: tuple[bool, bool],
    joiner: Of2Or3[Any],
    windows: JoinWindows,
    joined: StreamJoined | None = None,
) -> StreamFlow:
    joins_two = with_key(joiner, 3, "a joiner")
    options = joined or StreamJoined()
    return joins.join_streams(flow, other.flow, joins_two, windows, outer, options)


def _join_table(
    flow: StreamFlow,
    table: "KTable[Any, Any]",
    left: bool,
    joiner: Of2Or3[Any],
    joined: Joined[Any, Any] | None = None,
) -> StreamFlow:
    joins_two = with_key(joiner, 3, "a joiner")
    return joins.join_table(flow, table.flow, joins_two, left, joined or Joined())


def _join_global_table(
    flow: StreamFlow,
    table: GlobalKTable[Any, Any],
    left: bool,
    selector: Of1Or2[Any],
    joiner: Of2Or3[Any],
    named: Name = None,
) -> StreamFlow:
    selects = with_key(selector, 2, "a key selector")
    joins_two = with_key(joiner, 3, "a joiner")
    name = name_of(named)
    return joins.join_global_table(flow, table.view, selects, joins_two, left, name)


class KTable(TableOperators[K, V], Generic[K, V]):
    """A table: the latest value of each key; None removes an entry."""

    def map_values(
        self, mapper: Of1Or2[V2], materialized: Kept = None, *, named: Name = None
    ) -> "KTable[K, V2]":
        """Give each entry a new value."""
        return KTable(
            tables.map_values(self.flow, mapper, name_of(named), Materialized.asked(materialized))
        )

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer],
        *stores: str,
        materialized: Kept = None,
        named: Name = None,
    ) -> "KTable[K, Any]":
        """Give each entry a new value with the help of stores."""
        kept = Materialized.asked(materialized)
        return KTable(tables.transform_values(self.flow, supplier, stores, name_of(named), kept))

    def to_stream(
        self, selector: Of1Or2[Any] | None = None, *, named: Name = None
    ) -> "KStream[Any, V]":
        """Read the table's changes as a stream; with a selector under new keys."""
        stream: KStream[Any, V] = KStream(tables.to_stream(self.flow, name_of(named)))
        return stream if selector is None else stream.select_key(selector)

    def group_by(
        self,
        selector: Of1Or2[tuple[K2, V2]],
        grouped: Grouped[K2, V2] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedTable[K2, V2]":
        """Group the entries by a new key, each with a new value."""
        options = grouped or Grouped(key, value, name)
        return KGroupedTable(tables.group_by(self.flow, selector, options))

    def join(
        self,
        other: "KTable[Any, Any]",
        *arguments: Any,
        materialized: Kept = None,
        named: Name = None,
        joined: TableJoined | None = None,
    ) -> "KTable[K, Any]":
        """Join with a table: `(other, joiner)` by key, `(other, extractor, joiner)` by foreign key."""
        return self._join(other, arguments, (False, False), materialized, joined or named)

    def left_join(
        self,
        other: "KTable[Any, Any]",
        *arguments: Any,
        materialized: Kept = None,
        named: Name = None,
        joined: TableJoined | None = None,
    ) -> "KTable[K, Any]":
        """Join as `join` does; entries of this table without a partner are joined with None."""
        return self._join(other, arguments, (True, False), materialized, joined or named)

    def outer_join(
        self,
        other: "KTable[K, Any]",
        joiner: Callable[[Any, Any], R],
        *,
        materialized: Kept = None,
        named: Name = None,
    ) -> "KTable[K, R]":
        """Join by key; entries of either table without a partner are joined with None."""
        return self._join(other, (joiner,), (True, True), materialized, named)

    def _join(
        self,
        other: "KTable[Any, Any]",
        arguments: tuple[Any, ...],
        outer: tuple[bool, bool],
        materialized: Kept,
        joined: TableJoined | Name,
    ) -> "KTable[K, Any]":
        name = joined.name if isinstance(joined, TableJoined) else name_of(joined)
        if len(arguments) == 1:
            kept = Materialized.asked(materialized)
            return KTable(tables.join(self.flow, other.flow, arguments[0], outer, name, kept))
        extractor, joiner = arguments
        options = TableJoined(name), Materialized.of(materialized)
        flows = self.flow, other.flow
        return KTable(tables.join_on_foreign_key(*flows, extractor, joiner, outer[0], options))


class KGroupedTable(SnakeCase, Generic[K, V]):
    """A table by the key of a group; an aggregation takes entries in and, when they change, out."""

    def __init__(self, flow: groups.TableGroupFlow) -> None:
        self._flow = flow

    def count(self, materialized: Kept = None, *, named: Name = None) -> KTable[K, int]:
        """Count the entries of each group."""
        folds = groups.count_initializer, groups.count_aggregator, groups.count_subtractor
        return self._aggregate("AGGREGATE", folds, materialized, named, Serdes.long())

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[K, V]:
        """Combine the values of each group; the subtractor takes an old value out again."""
        folds = (
            None,
            lambda _key, value, aggregate: adder(aggregate, value),
            lambda _key, value, aggregate: subtractor(aggregate, value),
        )
        return self._aggregate("REDUCE", folds, materialized, named, self._flow.value)

    def aggregate(
        self,
        initializer: Callable[[], R],
        adder: Of2Or3[R],
        subtractor: Of2Or3[R],
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[K, R]:
        """Fold the values of each group; functions take value and aggregate, or key, value, aggregate."""
        adds, subtracts = with_key(adder, 3, "an adder"), with_key(subtractor, 3, "a subtractor")
        return self._aggregate("AGGREGATE", (initializer, adds, subtracts), materialized, named)

    def _aggregate(
        self,
        kind: str,
        folds: tuple[Any, Any, Any],
        materialized: Kept,
        named: Name,
        value: Serde[Any] | None = None,
    ) -> KTable[K, Any]:
        asked = groups.Aggregation(f"KTABLE-{kind}-", Materialized.of(materialized), name_of(named))
        return KTable(groups.aggregate_table(self._flow, asked, folds, value))


class KGroupedStream(SnakeCase, Generic[K, V]):
    """A stream by the key of a group."""

    def __init__(self, group: groups.GroupFlow) -> None:
        self.group = group

    def count(self, materialized: Kept = None, *, named: Name = None) -> KTable[K, int]:
        """Count the records of each key."""
        fold = groups.Fold(groups.count_initializer, groups.count_aggregator, None, Serdes.long())
        extra = materialized is not None
        return self._aggregate("AGGREGATE", fold, materialized, named, extra)

    def reduce(
        self, reducer: Callable[[V, V], V], materialized: Kept = None, *, named: Name = None
    ) -> KTable[K, V]:
        """Combine the values of each key; the first one starts."""
        fold = groups.Fold(
            groups.no_initializer, groups.reducing(reducer), None, self.group.flow.value
        )
        return self._aggregate("REDUCE", fold, materialized, named)

    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2Or3[R],
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[K, R]:
        """Fold the values of each key; the aggregator takes value and aggregate, or the key first."""
        fold = groups.Fold(initializer, with_key(aggregator, 3, "an aggregator"))
        return self._aggregate("AGGREGATE", fold, materialized, named)

    def _aggregate(
        self, kind: str, fold: groups.Fold, kept: Kept, named: Name, extra: bool = False
    ) -> KTable[K, Any]:
        asked = groups.Aggregation(f"KSTREAM-{kind}-", Materialized.of(kept), name_of(named), extra)
        starts = None if fold.initializer is groups.no_initializer else fold.initializer
        return KTable(groups.aggregate(self.group, asked, starts, fold.aggregator, fold.value))

    def cogroup(self, aggregator: Of2Or3[R]) -> "CogroupedKStream[K, R]":
        """Aggregate this stream together with others, into one table."""
        return CogroupedKStream([(self.group, with_key(aggregator, 3, "an aggregator"))])

    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedKStream[K, V]": ...
    @overload
    def windowed_by(
        self, windows: TimeWindows | UnlimitedWindows | SlidingWindows
    ) -> "TimeWindowedKStream[K, V]": ...
    def windowed_by(self, windows: groups.AnyWindows) -> Any:
        """Aggregate by window as well."""
        is_session = isinstance(windows, SessionWindows)
        kind = SessionWindowedKStream if is_session else TimeWindowedKStream
        return kind(self.group, groups.WindowSpec(windows))


class _WindowedKStream(SnakeCase, Generic[K, V]):
    """What streams by key and window share."""

    def __init__(self, group: groups.GroupFlow, spec: groups.WindowSpec) -> None:
        self._group = group
        self._spec = spec

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        """Emit each update, or each window once when it closes."""
        if strategy.on_close and isinstance(self._spec.windows, UnlimitedWindows):
            raise ValueError("unlimited windows never close; emit on window update")
        return type(self)(self._group, replace(self._spec, on_close=strategy.on_close))

    def on_late(self, callback: OnLate) -> Self:
        """Tell a function of each record that comes too late for a window; Kafka only counts them."""
        return type(self)(self._group, replace(self._spec, on_late=callback))

    def idle_timeout(self, timeout: Duration) -> Self:
        """Close windows that are emitted on close when no record came for so long on the wall clock."""
        return type(self)(self._group, replace(self._spec, idle_timeout_ms=milliseconds(timeout)))

    def count(self, materialized: Kept = None, *, named: Name = None) -> KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        fold = groups.Fold(
            groups.count_initializer,
            groups.count_aggregator,
            lambda _key, one, other: one + other,
            Serdes.long(),
        )
        return self._aggregate("AGGREGATE", fold, materialized, named, materialized is not None)

    def reduce(
        self, reducer: Callable[[V, V], V], materialized: Kept = None, *, named: Name = None
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window; the first one starts."""
        reduces = groups.reducing(reducer)
        fold = groups.Fold(
            groups.no_initializer,
            reduces,
            lambda key, one, other: reduces(key, other, one),
            self._group.flow.value,
        )
        return self._aggregate("REDUCE", fold, materialized, named)

    def _aggregate(
        self, kind: str, fold: groups.Fold, kept: Kept, named: Name, extra: bool = False
    ) -> KTable[Windowed[K], Any]:
        asked = groups.Aggregation(f"KSTREAM-{kind}-", Materialized.of(kept), name_of(named), extra)
        return KTable(groups.windowed_aggregate(self._group, asked, self._spec, fold))


class TimeWindowedKStream(_WindowedKStream[K, V], Generic[K, V]):
    """A stream by key and tumbling, hopping, unlimited or sliding window."""

    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2Or3[R],
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[Windowed[K], R]:
        """Fold the values of each key and window."""
        fold = groups.Fold(initializer, with_key(aggregator, 3, "an aggregator"))
        return self._aggregate("AGGREGATE", fold, materialized, named)


class SessionWindowedKStream(_WindowedKStream[K, V], Generic[K, V]):
    """A stream by key and session."""

    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2Or3[R],
        merger: Of2Or3[R],
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[Windowed[K], R]:
        """Fold the values of each key and session; the merger makes one aggregate of two."""
        merges = with_key(merger, 3, "a merger")
        fold = groups.Fold(initializer, with_key(aggregator, 3, "an aggregator"), merges)
        return self._aggregate("AGGREGATE", fold, materialized, named)


class CogroupedKStream(SnakeCase, Generic[K, R]):
    """Several grouped streams that are aggregated into one table, by key or by key and window."""

    def __init__(
        self, parts: list[groups.CogroupPart], spec: groups.WindowSpec | None = None
    ) -> None:
        self._parts = parts
        self._spec = spec

    def cogroup(
        self, group: KGroupedStream[K, Any], aggregator: Of2Or3[R]
    ) -> "CogroupedKStream[K, R]":
        """Add a grouped stream with its aggregator."""
        part = group.group, with_key(aggregator, 3, "an aggregator")
        return CogroupedKStream([*self._parts, part])

    def windowed_by(self, windows: groups.AnyWindows) -> "CogroupedKStream[Windowed[K], R]":
        """Aggregate by window as well."""
        return CogroupedKStream(self._parts, groups.WindowSpec(windows))

    def aggregate(
        self,
        initializer: Callable[[], R],
        merger: Of2Or3[R] | None = None,
        materialized: Kept = None,
        *,
        named: Name = None,
    ) -> KTable[K, R]:
        """Fold the values of all streams; sessions need a merger that makes one aggregate of two."""
        merges = None if merger is None else with_key(merger, 3, "a merger")
        prefix = "COGROUPKSTREAM-AGGREGATE-"
        asked = groups.Aggregation(prefix, Materialized.of(materialized), name_of(named))
        fold = groups.Fold(initializer, merger=merges)
        return KTable(groups.aggregate_cogroup(self._parts, asked, fold, self._spec))

"""Tables, global tables, and tables that are grouped by another key."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, overload

from ottla.streams.dsl.building import tables
from ottla.streams.dsl.building.flows import TableFlow
from ottla.streams.dsl.building.groups import TableGroupFlow
from ottla.streams.dsl.emitting import BufferConfig, Suppressed
from ottla.streams.dsl.misplaced_serdes import explains_serdes
from ottla.streams.expressions.functions import K2, V2, K, Of1, Of2, Of3, OfPair, R, V
from ottla.streams.model.durations import Duration
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.operators.tables import ValueTransformer
from ottla.streams.operators.views import View
from ottla.streams.options.dsl_options import (
    Grouped,
    Materialized,
    Name,
    Named,
    Option,
    name_of,
    of_kind,
    options_of,
)
from ottla.streams.options.joins import TableJoined
from ottla.streams.serdes import Serde

if TYPE_CHECKING:
    from ottla.streams.dsl.kstream import KStream


@dataclass(frozen=True)
class GlobalKTable(SnakeCase, Generic[K, V]):
    """A table of which every task has all partitions; streams join it by any key."""

    view: View
    store_name: str

    @property
    def queryable_store_name(self) -> str:
        """The name of the store for interactive queries."""
        return self.store_name


# Methods of streams that users may look for on a table.
_OF_STREAMS = (
    "to map flat_map flat_map_values select_key peek foreach split branch merge repartition print process "
    "process_values through group_by_key"
)


@explains_serdes
class KTable(SnakeCase, Generic[K, V]):
    """A table: the latest value of each key. A value of None deletes the key."""

    _elsewhere = (
        (
            frozenset(_OF_STREAMS.split()),
            "its changes are a stream, to_stream().{}(…)",
        ),
        (
            frozenset(("count", "reduce", "aggregate")),
            "group its entries first, group_by(lambda key, value: (new_key, value)).{}(…)",
        ),
        (frozenset(("windowed_by", "cogroup")), "only streams have windows, tables do not"),
    )

    def __init__(self, flow: TableFlow) -> None:
        self.flow = flow

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store for interactive queries; None if the table is not materialized."""
        return self.flow.store_name

    @overload
    def filter(
        self, predicate: Of1[V, object], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]": ...
    @overload
    def filter(
        self, predicate: Of2[K, V, object], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]": ...
    def filter(
        self, predicate: Any, materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]":
        """Keep the entries that satisfy the predicate."""
        table_options = options_of(materialized, named)
        return KTable(tables.filter_table(self.flow, predicate, False, *table_options))

    @overload
    def filter_not(
        self, predicate: Of1[V, object], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]": ...
    @overload
    def filter_not(
        self, predicate: Of2[K, V, object], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]": ...
    def filter_not(
        self, predicate: Any, materialized: Option = None, named: Option = None
    ) -> "KTable[K, V]":
        """Drop the entries that satisfy the predicate."""
        table_options = options_of(materialized, named)
        return KTable(tables.filter_table(self.flow, predicate, True, *table_options))

    def suppress(
        self,
        suppressed: Suppressed | str,
        *,
        buffer: BufferConfig | None = None,
        idle_timeout: Duration | None = None,
        on_late: Callable[[Any], None] | None = None,
        named: Name = None,
    ) -> "KTable[K, V]":
        """Hold back changes; `"until_window_closes"` emits only the final result of each window.

        After `idle_timeout` of wall-clock time without records, stream time follows the wall clock
        and windows close. `on_late` is called with each change that arrives for such a window
        afterwards; those changes are dropped.
        """
        if isinstance(suppressed, str):
            if suppressed != "until_window_closes":
                raise ValueError(
                    f"not a way to suppress: {suppressed!r}; write 'until_window_closes', or "
                    "Suppressed.until_time_limit(…)"
                )
            suppressed = Suppressed.until_window_closes(buffer)
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(
                f"a table is suppressed by 'until_window_closes' or a Suppressed, not by {suppressed!r}"
            )
        if idle_timeout is not None:
            suppressed = suppressed.with_idle_timeout(idle_timeout, on_late)
        if named is not None:
            suppressed = replace(suppressed, name=name_of(named))
        return KTable(tables.suppress(self.flow, suppressed))

    @overload
    def map_values(
        self, mapper: Of1[V, V2], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V2]": ...
    @overload
    def map_values(
        self, mapper: Of2[K, V, V2], materialized: Option = None, named: Option = None
    ) -> "KTable[K, V2]": ...
    def map_values(
        self, mapper: Any, materialized: Option = None, named: Option = None
    ) -> "KTable[K, Any]":
        """Replace the value of each entry."""
        return KTable(tables.map_values(self.flow, mapper, *options_of(materialized, named)))

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer],
        *stores: str | Materialized[Any, Any] | Named,
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, Any]":
        """Replace the value of each entry, with access to state stores.

        `stores` are names of stores; a Materialized and a Named may be among them.
        """
        names = tuple(store for store in stores if isinstance(store, str))
        for store in stores:
            if not isinstance(store, str | Materialized | Named):
                raise TopologyError(
                    f"a transformer is connected to stores by their names, not by {store!r}"
                )
            if isinstance(store, Materialized):
                materialized = store
            elif isinstance(store, Named):
                named = store
        return KTable(
            tables.transform_values(self.flow, supplier, names, *options_of(materialized, named))
        )

    @overload
    def to_stream(self, selector: Named | None = None, named: Name = None) -> "KStream[K, V]": ...
    @overload
    def to_stream(self, selector: Of1[V, K2], named: Name = None) -> "KStream[K2, V]": ...
    @overload
    def to_stream(self, selector: Of2[K, V, K2], named: Name = None) -> "KStream[K2, V]": ...
    def to_stream(self, selector: Any = None, named: Name = None) -> "KStream[Any, V]":
        """Convert the changes of the table to a stream; a selector sets new keys."""
        if isinstance(selector, Named):
            selector, named = None, selector
        flow = tables.to_stream(self.flow, name_of(named))
        stream: KStream[Any, V] = self.flow.graph.new_stream(flow)
        return stream if selector is None else stream.select_key(selector)

    @overload
    def group_by(
        self,
        selector: OfPair[V, K2, V2],
        grouped: Grouped[K2, V2] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedTable[K2, V2]": ...
    @overload
    def group_by(
        self,
        selector: Of2[K, V, tuple[K2, V2]],
        grouped: Grouped[K2, V2] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedTable[K2, V2]": ...
    def group_by(
        self, selector: Any, grouped: Grouped[Any, Any] | None = None, **options: Any
    ) -> "KGroupedTable[Any, Any]":
        """Group the entries by a new key; the selector returns the new key and value."""
        group_options = of_kind(grouped, Grouped, "a group") or Grouped(**options)
        return KGroupedTable(tables.group_by(self.flow, selector, group_options))

    @overload
    def join(
        self,
        other: "KTable[K, V2]",
        joiner: Of2[V, V2, R],
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    @overload
    def join(
        self,
        other: "KTable[K2, V2]",
        extractor: Of1[V, K2],
        joiner: Of2[V, V2, R],
        joined: TableJoined | None = None,
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    @overload
    def join(
        self,
        other: "KTable[K2, V2]",
        extractor: Of2[K, V, K2],
        joiner: Of2[V, V2, R],
        joined: TableJoined | None = None,
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    def join(self, other: Any, *arguments: Any, **options: Any) -> "KTable[K, Any]":
        """Join with a table: `(other, joiner)` by key, `(other, extractor, joiner)` by foreign key."""
        sides = self.flow, _flow_of(other)
        return KTable(tables.join_tables(*sides, (False, False), arguments, options))

    @overload
    def left_join(
        self,
        other: "KTable[K, V2]",
        joiner: Of2[V, V2 | None, R],
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    @overload
    def left_join(
        self,
        other: "KTable[K2, V2]",
        extractor: Of1[V, K2],
        joiner: Of2[V, V2 | None, R],
        joined: TableJoined | None = None,
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    @overload
    def left_join(
        self,
        other: "KTable[K2, V2]",
        extractor: Of2[K, V, K2],
        joiner: Of2[V, V2 | None, R],
        joined: TableJoined | None = None,
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]": ...
    def left_join(self, other: Any, *arguments: Any, **options: Any) -> "KTable[K, Any]":
        """Join as `join` does; the joiner gets None for entries of this table without a match."""
        sides = self.flow, _flow_of(other)
        return KTable(tables.join_tables(*sides, (True, False), arguments, options))

    def outer_join(
        self,
        other: "KTable[K, V2]",
        joiner: Of2[V | None, V2 | None, R],
        materialized: Option = None,
        named: Option = None,
    ) -> "KTable[K, R]":
        """Join by key; the joiner gets None for entries of either table without a match."""
        options = {"materialized": materialized, "named": named}
        sides = self.flow, _flow_of(other)
        return KTable(tables.join_tables(*sides, (True, True), (joiner,), options))


def _flow_of(other: Any) -> TableFlow:
    if not isinstance(other, KTable):
        raise TopologyError(
            f"a table is joined with a table, not with a {type(other).__name__}; to join a stream with a "
            "table or a global table, call the stream's join"
        )
    return other.flow


@explains_serdes
class KGroupedTable(SnakeCase, Generic[K, V]):
    """A table that is grouped by a new key; aggregations add new entries and subtract old ones."""

    def __init__(self, flow: TableGroupFlow) -> None:
        self._flow = flow

    def count(self, materialized: Option = None, named: Option = None) -> KTable[K, int]:
        """Count the entries of each group."""
        return KTable(self._flow.count(options_of(materialized, named)))

    def reduce(
        self,
        adder: Of2[V, V, V],
        subtractor: Of2[V, V, V],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, V]:
        """Combine the values of each group; `subtractor` removes an old value from the aggregate."""
        return KTable(self._flow.reduce(adder, subtractor, options_of(materialized, named)))

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        adder: Of2[V, R, R],
        subtractor: Of2[V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        adder: Of3[K, V, R, R],
        subtractor: Of3[K, V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, R]: ...
    def aggregate(
        self,
        initializer: Any,
        adder: Any,
        subtractor: Any,
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, Any]:
        """Aggregate each group; functions take (value, aggregate) or (key, value, aggregate)."""
        folds = initializer, adder, subtractor
        return KTable(self._flow.aggregate(folds, options_of(materialized, named)))

"""KStream: the streams of the DSL, with the operators of Kafka Streams in snake_case.

Each method only adds operators to the plan (`building/`) and has an overload for each form in Kafka
Streams. Functions take the value, or the key and the value. Every operator takes `named`; those
that create a table take `materialized`, a name or a Materialized.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, overload

from ottla.streams.dsl.building import joins, streams
from ottla.streams.dsl.building.groups import GroupFlow, Grouping
from ottla.streams.dsl.grouped import KGroupedStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.dsl.misplaced_serdes import explains_serdes
from ottla.streams.dsl.stream_operators import StreamOperators
from ottla.streams.expressions.arity import makes_pair, with_key
from ottla.streams.expressions.functions import K2, V2, K, Of1, Of2, Of3, OfPair, R, V
from ottla.streams.model.windows import JoinWindows
from ottla.streams.operators import stateless
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
from ottla.streams.options.joins import Joined, StreamJoined
from ottla.streams.processor.api import Processor
from ottla.streams.serdes import Serde

_NEW = {"key": None, "value": None, "repartition_required": True}


@explains_serdes
class KStream(StreamOperators[K, V], Generic[K, V]):
    """A stream of records; each record is an independent event."""

    @overload
    def select_key(self, selector: Of1[V, K2], named: Name = None) -> "KStream[K2, V]": ...
    @overload
    def select_key(self, selector: Of2[K, V, K2], named: Name = None) -> "KStream[K2, V]": ...
    def select_key(self, selector: Any, named: Name = None) -> "KStream[Any, V]":
        """Set a new key for each record."""
        return KStream(streams.select_key(self.flow, selector, name_of(named)))

    @overload
    def map(self, mapper: OfPair[V, K2, V2], named: Name = None) -> "KStream[K2, V2]": ...
    @overload
    def map(self, mapper: Of2[K, V, tuple[K2, V2]], named: Name = None) -> "KStream[K2, V2]": ...
    def map(self, mapper: Any, named: Name = None) -> "KStream[Any, Any]":
        """Replace the key and value of each record; `mapper` is a function that returns a pair, or
        a pair of Columns.
        """
        operator = stateless.Map(makes_pair(mapper, "a mapper"))
        return KStream(self._then(named, "MAP", operator, **_NEW))

    @overload
    def map_values(self, mapper: Of1[V, V2], named: Name = None) -> "KStream[K, V2]": ...
    @overload
    def map_values(self, mapper: Of2[K, V, V2], named: Name = None) -> "KStream[K, V2]": ...
    def map_values(self, mapper: Any, named: Name = None) -> "KStream[K, Any]":
        """Replace the value of each record."""
        operator = stateless.MapValues(with_key(mapper, 2, "a value mapper"))
        return KStream(self._then(named, "MAPVALUES", operator, value=None))

    @overload
    def flat_map(
        self, mapper: Of1[V, Iterable[tuple[K2, V2]]], named: Name = None
    ) -> "KStream[K2, V2]": ...
    @overload
    def flat_map(
        self, mapper: Of2[K, V, Iterable[tuple[K2, V2]]], named: Name = None
    ) -> "KStream[K2, V2]": ...
    def flat_map(self, mapper: Any, named: Name = None) -> "KStream[Any, Any]":
        """Replace each record with any number of records; `mapper` returns pairs of key and value."""
        operator = stateless.FlatMap(with_key(mapper, 2, "a mapper"))
        return KStream(self._then(named, "FLATMAP", operator, **_NEW))

    @overload
    def flat_map_values(
        self, mapper: Of1[V, Iterable[V2]], named: Name = None
    ) -> "KStream[K, V2]": ...
    @overload
    def flat_map_values(
        self, mapper: Of2[K, V, Iterable[V2]], named: Name = None
    ) -> "KStream[K, V2]": ...
    def flat_map_values(self, mapper: Any, named: Name = None) -> "KStream[K, Any]":
        """Replace each record with any number of records of the same key; `mapper` returns their
        values.
        """
        operator = stateless.FlatMapValues(with_key(mapper, 2, "a value mapper"))
        return KStream(self._then(named, "FLATMAPVALUES", operator, value=None))

    def to_table(self, materialized: Option = None, named: Option = None) -> "KTable[K, V]":
        """Convert the stream to a table: each record is an update of the value of its key."""
        name, options = options_of(materialized, named)
        return KTable(streams.to_table(self.flow, options or Materialized(), name))

    def process(
        self,
        supplier: Callable[[], Processor[K, V, K2, V2]],
        *stores: str | Named,
        named: Name = None,
    ) -> "KStream[K2, V2]":
        """Process the records with a processor, which may forward records of any key and value."""
        return KStream(streams.process(self.flow, supplier, stores, name_of(named)))

    def process_values(
        self,
        supplier: Callable[[], Processor[K, V, Any, V2]],
        *stores: str | Named,
        named: Name = None,
    ) -> "KStream[K, V2]":
        """Process the records with a processor that cannot change their keys."""
        return KStream(streams.process_values(self.flow, supplier, stores, name_of(named)))

    @overload
    def group_by(
        self,
        selector: Of1[V, K2],
        grouped: Grouped[K2, V] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K2, V]": ...
    @overload
    def group_by(
        self,
        selector: Of2[K, V, K2],
        grouped: Grouped[K2, V] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K2, V]": ...
    @overload
    def group_by(
        self: "KStream[K, V2 | None]",
        selector: Of1[V2 | None, K2],
        grouped: Grouped[K2, V2] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K2, V2]": ...
    @overload
    def group_by(
        self: "KStream[K, V2 | None]",
        selector: Of2[K, V2 | None, K2],
        grouped: Grouped[K2, V2] | None = None,
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K2, V2]": ...
    def group_by(
        self, selector: Any, grouped: Grouped[Any, Any] | None = None, **options: Any
    ) -> "KGroupedStream[Any, Any]":
        """Group the records by a new key."""
        group_options = of_kind(grouped, Grouped, "a group") or Grouped(**options)
        flow = streams.select_key(self.flow, selector, group_options.name)
        flow = replace(flow, key=group_options.key, value=group_options.value or self.flow.value)
        return KGroupedStream(Grouping(GroupFlow(flow, group_options.name)))

    @overload
    def group_by_key(
        self,
        grouped: Grouped[K, V] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K, V]": ...
    @overload
    def group_by_key(
        self: "KStream[K, V2 | None]",
        grouped: Grouped[K, V2] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[K, V2]": ...
    def group_by_key(
        self,
        grouped: Grouped[Any, Any] | None = None,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[Any, Any]":
        """Group the records by their current key."""
        group_options = of_kind(grouped, Grouped, "a group") or Grouped(key, value, name)
        serdes = group_options.key or self.flow.key, group_options.value or self.flow.value
        flow = replace(self.flow, key=serdes[0], value=serdes[1])
        return KGroupedStream(Grouping(GroupFlow(flow, group_options.name)))

    @overload
    def join(
        self,
        other: "KStream[K, V2]",
        joiner: Of2[V, V2, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: "KStream[K, V2]",
        joiner: Of3[K, V, V2, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self, other: "KTable[K, V2]", joiner: Of2[V, V2, R], joined: Joined[K, V] | None = None
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self, other: "KTable[K, V2]", joiner: Of3[K, V, V2, R], joined: Joined[K, V] | None = None
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of1[V, K2],
        joiner: Of2[V, V2, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of1[V, K2],
        joiner: Of3[K, V, V2, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of2[K, V, K2],
        joiner: Of2[V, V2, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of2[K, V, K2],
        joiner: Of3[K, V, V2, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    def join(self, other: Any, *arguments: Any, **options: Any) -> "KStream[K, Any]":
        """Join with a stream within a window, with a table by key, or with a global table by any
        key.
        """
        return KStream(joins.join(self.flow, _side(other), (False, False), arguments, options))

    @overload
    def left_join(
        self,
        other: "KStream[K, V2]",
        joiner: Of2[V, V2 | None, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: "KStream[K, V2]",
        joiner: Of3[K, V, V2 | None, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: "KTable[K, V2]",
        joiner: Of2[V, V2 | None, R],
        joined: Joined[K, V] | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: "KTable[K, V2]",
        joiner: Of3[K, V, V2 | None, R],
        joined: Joined[K, V] | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of1[V, K2],
        joiner: Of2[V, V2 | None, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of1[V, K2],
        joiner: Of3[K, V, V2 | None, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of2[K, V, K2],
        joiner: Of2[V, V2 | None, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        selector: Of2[K, V, K2],
        joiner: Of3[K, V, V2 | None, R],
        named: Name = None,
    ) -> "KStream[K, R]": ...
    def left_join(self, other: Any, *arguments: Any, **options: Any) -> "KStream[K, Any]":
        """Join as `join` does; the joiner gets None for records of this stream without a match."""
        return KStream(joins.join(self.flow, _side(other), (True, False), arguments, options))

    @overload
    def outer_join(
        self,
        other: "KStream[K, V2]",
        joiner: Of2[V | None, V2 | None, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    @overload
    def outer_join(
        self,
        other: "KStream[K, V2]",
        joiner: Of3[K, V | None, V2 | None, R],
        windows: JoinWindows,
        joined: StreamJoined | None = None,
    ) -> "KStream[K, R]": ...
    def outer_join(self, other: Any, *arguments: Any, **options: Any) -> "KStream[K, Any]":
        """Join with a stream; the joiner gets None for records of either stream without a match."""
        return KStream(joins.join(self.flow, _side(other), (True, True), arguments, options))


def _side(other: Any) -> Any:
    """Return the flow of the other side of a join, or the view of a global table."""
    return other.view if isinstance(other, GlobalKTable) else getattr(other, "flow", other)

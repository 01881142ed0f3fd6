"""Streams that are grouped by key, optionally by window too; aggregating them creates tables."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, Self, overload

from ottla.streams.dsl.building import groups
from ottla.streams.dsl.building.groups import Grouping, WindowSpec
from ottla.streams.dsl.emitting import EmitStrategy
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.misplaced_serdes import explains_serdes
from ottla.streams.expressions.arity import with_key
from ottla.streams.expressions.functions import K, Of2, Of3, R, V
from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.records import Windowed
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.model.windows import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from ottla.streams.operators.windowed import OnLate
from ottla.streams.options.dsl_options import Option, options_of

# Methods of tables that users may look for on a grouped stream.
_OF_TABLES = frozenset(
    ("to_stream", "to", "filter", "filter_not", "map_values", "suppress", "join", "left_join")
)
_NOT_YET = (_OF_TABLES, "count, reduce or aggregate it first: that makes a table, which has {}")


@explains_serdes
class KGroupedStream(SnakeCase, Generic[K, V]):
    """A stream that is grouped by key."""

    _elsewhere = (_NOT_YET,)

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping

    def count(self, materialized: Option = None, named: Option = None) -> KTable[K, int]:
        """Count the records of each key."""
        return KTable(self.grouping.count(options_of(materialized, named)))

    def reduce(
        self, reducer: Of2[V, V, V], materialized: Option = None, named: Option = None
    ) -> KTable[K, V]:
        """Combine the values of each key; the first value is the initial aggregate."""
        return KTable(self.grouping.reduce(reducer, options_of(materialized, named)))

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2[V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of3[K, V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, R]: ...
    def aggregate(
        self, initializer: Any, aggregator: Any, materialized: Option = None, named: Option = None
    ) -> KTable[K, Any]:
        """Aggregate the values of each key; the aggregator takes (value, aggregate) or (key, value,
        aggregate).
        """
        table_options = options_of(materialized, named)
        return KTable(self.grouping.aggregate(initializer, aggregator, None, table_options))

    @overload
    def cogroup(self, aggregator: Of2[V, R, R]) -> "CogroupedKStream[K, R]": ...
    @overload
    def cogroup(self, aggregator: Of3[K, V, R, R]) -> "CogroupedKStream[K, R]": ...
    def cogroup(self, aggregator: Any) -> "CogroupedKStream[K, Any]":
        """Cogroup this stream with others, so that they are aggregated into one table."""
        return CogroupedKStream([(self.grouping.group, with_key(aggregator, 3, "an aggregator"))])

    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedKStream[K, V]": ...
    @overload
    def windowed_by(
        self, windows: TimeWindows | UnlimitedWindows | SlidingWindows
    ) -> "TimeWindowedKStream[K, V]": ...
    def windowed_by(self, windows: groups.AnyWindows) -> Any:
        """Group by window as well as by key."""
        _check_windows(windows)
        is_session = isinstance(windows, SessionWindows)
        kind = SessionWindowedKStream if is_session else TimeWindowedKStream
        return kind(replace(self.grouping, spec=WindowSpec(windows)))


def _check_windows(windows: Any) -> None:
    if not isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows):
        raise TopologyError(
            "a stream is windowed by TimeWindows.of_size_with_no_grace(size), SlidingWindows, "
            f"SessionWindows or UnlimitedWindows, not by {windows!r}"
        )


@explains_serdes
class _WindowedKStream(SnakeCase, Generic[K, V]):
    """Methods of all streams that are grouped by key and window."""

    _elsewhere = (_NOT_YET,)

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        """Emit on each update, or once per window when it closes."""
        if not isinstance(strategy, EmitStrategy):
            raise TypeError(f"write EmitStrategy.on_window_close(), not {strategy!r}")
        return type(self)(self._grouping.emitting(on_close=strategy.on_close))

    def on_late(self, callback: OnLate) -> Self:
        """Call a function with each record that is too late for its window; Kafka only counts them."""
        return type(self)(self._grouping.emitting(on_late=callback))

    def idle_timeout(self, timeout: Duration) -> Self:
        """Close windows that emit on close after `timeout` of wall-clock time without records."""
        return type(self)(self._grouping.emitting(idle_timeout_ms=milliseconds(timeout)))

    def count(self, materialized: Option = None, named: Option = None) -> KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        return KTable(self._grouping.count(options_of(materialized, named)))

    def reduce(
        self, reducer: Of2[V, V, V], materialized: Option = None, named: Option = None
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window; the first value is the initial aggregate."""
        return KTable(self._grouping.reduce(reducer, options_of(materialized, named)))


@explains_serdes
class TimeWindowedKStream(_WindowedKStream[K, V], Generic[K, V]):
    """A stream that is grouped by key and by tumbling, hopping, unlimited or sliding window."""

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2[V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of3[K, V, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    def aggregate(
        self, initializer: Any, aggregator: Any, materialized: Option = None, named: Option = None
    ) -> KTable[Windowed[K], Any]:
        """Aggregate the values of each key and window."""
        table_options = options_of(materialized, named)
        return KTable(self._grouping.aggregate(initializer, aggregator, None, table_options))


@explains_serdes
class SessionWindowedKStream(_WindowedKStream[K, V], Generic[K, V]):
    """A stream that is grouped by key and session."""

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2[V, R, R],
        merger: Of2[R, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of2[V, R, R],
        merger: Of3[K, R, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of3[K, V, R, R],
        merger: Of2[R, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Of3[K, V, R, R],
        merger: Of3[K, R, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]: ...
    def aggregate(
        self,
        initializer: Any,
        aggregator: Any,
        merger: Any,
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate the values of each key and session; `merger` combines the aggregates of two
        sessions.
        """
        table_options = options_of(materialized, named)
        merges = with_key(merger, 3, "a merger")
        return KTable(self._grouping.aggregate(initializer, aggregator, merges, table_options))


@explains_serdes
class CogroupedKStream(SnakeCase, Generic[K, R]):
    """Several grouped streams that are aggregated into one table."""

    def __init__(self, parts: list[groups.CogroupPart]) -> None:
        self._parts = parts

    @overload
    def cogroup(
        self, group: KGroupedStream[K, V], aggregator: Of2[V, R, R]
    ) -> "CogroupedKStream[K, R]": ...
    @overload
    def cogroup(
        self, group: KGroupedStream[K, V], aggregator: Of3[K, V, R, R]
    ) -> "CogroupedKStream[K, R]": ...
    def cogroup(self, group: KGroupedStream[K, Any], aggregator: Any) -> "CogroupedKStream[K, R]":
        """Add a grouped stream and the aggregator of its values."""
        if not isinstance(group, KGroupedStream):
            raise TopologyError(
                f"a grouped stream is aggregated together with another one, not with {group!r}"
            )
        part = group.grouping.group, with_key(aggregator, 3, "an aggregator")
        return CogroupedKStream([*self._parts, part])

    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedCogroupedKStream[K, R]": ...
    @overload
    def windowed_by(
        self, windows: TimeWindows | UnlimitedWindows | SlidingWindows
    ) -> "TimeWindowedCogroupedKStream[K, R]": ...
    def windowed_by(self, windows: groups.AnyWindows) -> Any:
        """Group by window as well as by key."""
        _check_windows(windows)
        is_session = isinstance(windows, SessionWindows)
        kind = SessionWindowedCogroupedKStream if is_session else TimeWindowedCogroupedKStream
        return kind(self._parts, WindowSpec(windows))

    def aggregate(
        self,
        initializer: Callable[[], R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[K, R]:
        """Aggregate the values of all streams by key."""
        table_options = options_of(materialized, named)
        return KTable(groups.aggregate_cogroup(self._parts, initializer, None, table_options, None))


@explains_serdes
class TimeWindowedCogroupedKStream(SnakeCase, Generic[K, R]):
    """Several streams that are grouped by key and by tumbling, hopping, unlimited or sliding
    window.
    """

    def __init__(self, parts: list[groups.CogroupPart], spec: WindowSpec) -> None:
        self._parts = parts
        self._spec = spec

    def aggregate(
        self,
        initializer: Callable[[], R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]:
        """Aggregate the values of all streams by key and window."""
        table_options = options_of(materialized, named)
        return KTable(
            groups.aggregate_cogroup(self._parts, initializer, None, table_options, self._spec)
        )


@explains_serdes
class SessionWindowedCogroupedKStream(SnakeCase, Generic[K, R]):
    """Several streams that are grouped by key and session."""

    def __init__(self, parts: list[groups.CogroupPart], spec: WindowSpec) -> None:
        self._parts = parts
        self._spec = spec

    def aggregate(
        self,
        initializer: Callable[[], R],
        merger: Of2[R, R, R] | Of3[K, R, R, R],
        materialized: Option = None,
        named: Option = None,
    ) -> KTable[Windowed[K], R]:
        """Aggregate the values of all streams by key and session.

        `merger` combines the aggregates of two sessions.
        """
        table_options = options_of(materialized, named)
        merges = with_key(merger, 3, "a merger")
        return KTable(
            groups.aggregate_cogroup(self._parts, initializer, merges, table_options, self._spec)
        )

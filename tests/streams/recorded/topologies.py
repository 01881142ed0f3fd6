"""The scenarios of Scenarios.java in our DSL, which test_recorded.py replays."""

import re
from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Branched,
    BufferConfig,
    EmitStrategy,
    FixedKeyProcessor,
    Grouped,
    Joined,
    JoinWindows,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
    Topology,
    UnlimitedWindows,
)

Build = Callable[[StreamsBuilder], Any]
SCENARIOS: dict[str, Build] = {}
SEEN = Stores.key_value("seen", Serdes.string(), Serdes.string())


def build(name: str) -> Topology:
    """Return the topology of a scenario."""
    if name == "processor_api":
        topology = Topology().add_source("Source", "in").add_processor("Process", Counter, "Source")
        return topology.add_state_store(SEEN, "Process").add_sink("Sink", "out", "Process")
    builder = StreamsBuilder()
    SCENARIOS[name](builder)
    return builder.build()


def pair(left: Any, right: Any) -> str:
    """Join two values in Java's format."""
    return "+".join("null" if each is None else str(each) for each in (left, right))


def from_in(b: StreamsBuilder) -> KStream[Any, Any]:
    """Read the first topic as a stream."""
    return b.stream("in")


def from_other(b: StreamsBuilder) -> KStream[Any, Any]:
    """Read the second topic as a stream."""
    return b.stream("other")


def left(b: StreamsBuilder) -> KTable[Any, Any]:
    """Read the first topic as a table."""
    return b.table("in")


def right(b: StreamsBuilder) -> KTable[Any, Any]:
    """Read the second topic as a table."""
    return b.table("other")


def grouped(b: StreamsBuilder) -> KGroupedStream[Any, Any]:
    """Group the records of the first topic by key."""
    return from_in(b).group_by_key()


def shown(value: Any) -> str | None:
    """Format a key or value for the output."""
    return None if value is None else str(value)


def out(result: KTable[Any, Any] | KStream[Any, Any]) -> None:
    """Write a result as text."""
    stream = result.to_stream() if isinstance(result, KTable) else result
    stream.map(lambda key, value: (shown(key), shown(value))).to("out")


def empty() -> str:
    """Return an empty aggregate."""
    return ""


def append(_key: Any, value: Any, total: str) -> str:
    """Add a value to an aggregate."""
    return f"{total}.{'null' if value is None else value}"


def append_other(_key: Any, value: Any, total: str) -> str:
    """Add a value of the other stream to an aggregate."""
    return f"{total}/{'null' if value is None else value}"


def merge_text(_key: Any, one: str, two: str) -> str:
    """Merge two aggregates."""
    return one + two


def reduce_text(one: str, two: str | None) -> str:
    """Reduce two values to one."""
    return f"{one}.{'null' if two is None else two}"


def versions(name: str) -> Materialized[Any, Any]:
    """Return a versioned store with a history of 10 ms."""
    return Materialized.as_(Stores.versioned(name, 10))


def foreign_key(value: str) -> str | None:
    """Return the foreign key in a value."""
    return None if value == "x" else value


def unbounded() -> BufferConfig:
    """Return a buffer without a limit."""
    return BufferConfig.unbounded()


class Counter(Processor[str, str, str, str]):
    """Collect the values of each key, and forward them every 10 ms of stream time."""

    def init(self, context: Any) -> None:
        """Schedule punctuators on both clocks."""
        super().init(context)
        self.seen = context.store("seen")
        context.schedule(10, PunctuationType.STREAM_TIME, self.tick)
        context.schedule(
            100,
            PunctuationType.WALL_CLOCK_TIME,
            lambda now: context.forward(Record("clock", str(now), now)),
        )

    def tick(self, now: int) -> None:
        """Forward all values."""
        text = ".".join(key + value for key, value in self.seen.all())
        self.context.forward(Record("tick", text, now))

    def process(self, record: Record[str, str]) -> None:
        """Store the value, or delete the key if the value is missing."""
        if record.key is None:
            return
        if record.value is None:
            self.seen.delete(record.key)
        else:
            self.seen.put(record.key, (self.seen.get(record.key) or "") + record.value)


class Twice(FixedKeyProcessor[str, str, str]):
    """Forward each value twice, the second time a little later."""

    def process(self, record: Record[str, str]) -> None:
        """Forward two records."""
        value = shown_null(record.value)
        self.context.forward(record.with_value(value + "1"))
        self.context.forward(record.with_value(value + "2").with_timestamp(record.timestamp + 1))


class Numbered:
    """Add to each value the number of calls for its key."""

    def init(self, context: Any) -> None:
        """Get the store."""
        self.seen = context.store("seen")

    def transform(self, key: str, value: str | None) -> str | None:
        """Count the call, also for tombstones."""
        self.seen.put(key, (self.seen.get(key) or "") + "i")
        return None if value is None else value + self.seen.get(key)

    def close(self) -> None:
        """Do nothing."""


def _transform_values(b: StreamsBuilder) -> None:
    b.add_state_store(SEEN)
    out(left(b).transform_values(Numbered, "seen"))


def _transform_values_stored(b: StreamsBuilder) -> None:
    b.add_state_store(SEEN)
    numbered = left(b).transform_values(Numbered, "seen", materialized="kept")
    out(numbered.group_by(lambda k, v: (v, k)).count())


def _split(b: StreamsBuilder) -> None:
    branches = (
        from_in(b)
        .split("by-")
        .branch(lambda k, v: k == "a", Branched.as_("a"))
        .branch(lambda k, v: k == "b", Branched.with_consumer(lambda s: s.to("out-b")))
        .branch(
            lambda k, v: v == "x",
            Branched.with_function(lambda s: s.map_values(lambda v: f"{v}!"), "x"),
        )
        .default_branch()
    )
    for name in sorted(branches):
        branches[name].to(f"out-{name}")


def _same_topic_twice(b: StreamsBuilder) -> None:
    from_in(b).filter(lambda k, v: k == "a").to("out-a")
    from_in(b).map_values(lambda v: f"{shown_null(v)}!").to("out-b")


def shown_null(value: Any) -> str:
    """Format a value like Java's string concatenation."""
    return "null" if value is None else str(value)


def _group_by_named_twice(b: StreamsBuilder) -> None:
    group = from_in(b).group_by(lambda v: v, Grouped.as_("by-value"))
    out(group.count())
    group.reduce(reduce_text).to_stream().to("out-reduced")


def _stream_self_join(b: StreamsBuilder) -> None:
    stream = from_in(b)
    stream.join(stream, pair, JoinWindows.of_time_difference_with_no_grace(3)).to("out")


def _rekeyed_joined_twice(b: StreamsBuilder) -> None:
    stream = from_in(b).select_key(lambda v: v)
    stream.join(right(b), pair).to("out-one")
    stream.left_join(b.table("third"), pair).to("out-two")


def _process(b: StreamsBuilder) -> None:
    b.add_state_store(SEEN)
    from_in(b).process(Counter, "seen").to("out")


SCENARIOS |= {
    "filter": lambda b: (
        from_in(b).filter(lambda v: v != "b").filter_not(lambda k, v: k == "c").to("out")
    ),
    "map": lambda b: from_in(b).map(lambda k, v: (v, k)).to("out"),
    "map_values": lambda b: (
        from_in(b)
        .map_values(lambda v: f"{shown_null(v)}!")
        .map_values(lambda k, v: shown_null(k) + v)
        .to("out")
    ),
    "flat_map": lambda b: from_in(b).flat_map(lambda k, v: [(k, v), (v, k)]).to("out"),
    "flat_map_values": lambda b: (
        from_in(b).flat_map_values(lambda v: [] if v is None else [v, v]).to("out")
    ),
    "select_key": lambda b: from_in(b).select_key(lambda v: v).peek(lambda v: None).to("out"),
    "merge": lambda b: (
        from_in(b).merge(from_other(b).map_values(lambda v: f"o{shown_null(v)}")).to("out")
    ),
    "split": _split,
    "repartition": lambda b: (
        from_in(b).select_key(lambda v: v).repartition(Repartitioned.as_("again")).to("out")
    ),
    "to_extractor": lambda b: from_in(b).filter(lambda v: v is not None).to(lambda v: f"out-{v}"),
    "pattern": lambda b: b.stream(re.compile("in.*")).to("out"),
    "same_topic_twice": _same_topic_twice,
    "count": lambda b: out(grouped(b).count()),
    "count_named": lambda b: out(grouped(b).count("counts", named="counting")),
    "count_unnamed_store": lambda b: out(
        grouped(b).count(Materialized.with_(Serdes.string(), Serdes.long()))
    ),
    "reduce": lambda b: out(grouped(b).reduce(reduce_text)),
    "aggregate": lambda b: out(grouped(b).aggregate(empty, append)),
    "aggregate_remove": lambda b: out(
        grouped(b).aggregate(empty, lambda v, total: None if v == "x" else total + v)
    ),
    "group_by": lambda b: out(from_in(b).group_by(lambda v: v).count()),
    "group_by_named_twice": _group_by_named_twice,
    "cogroup": lambda b: out(
        grouped(b)
        .cogroup(append)
        .cogroup(from_other(b).group_by_key(), append_other)
        .aggregate(empty)
    ),
    "cogroup_windowed": lambda b: out(
        grouped(b)
        .cogroup(append)
        .cogroup(from_other(b).group_by(lambda k, v: k), append_other)
        .windowed_by(TimeWindows.of_size_and_grace(10, 5))
        .aggregate(empty)
    ),
    "cogroup_sessions": lambda b: out(
        grouped(b)
        .cogroup(append)
        .cogroup(from_other(b).group_by_key(), append_other)
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(5, 5))
        .aggregate(empty, merge_text)
    ),
    "tumbling_count": lambda b: out(
        grouped(b).windowed_by(TimeWindows.of_size_with_no_grace(10)).count()
    ),
    "tumbling_grace_reduce": lambda b: out(
        grouped(b).windowed_by(TimeWindows.of_size_and_grace(10, 7)).reduce(reduce_text)
    ),
    "hopping_aggregate": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_and_grace(10, 5).advance_by(4))
        .aggregate(empty, append)
    ),
    "unlimited_count": lambda b: out(
        grouped(b).windowed_by(UnlimitedWindows.of().start_on(5)).count()
    ),
    "sliding_aggregate": lambda b: out(
        grouped(b)
        .windowed_by(SlidingWindows.of_time_difference_and_grace(6, 8))
        .aggregate(empty, append)
    ),
    "sliding_count": lambda b: out(
        grouped(b).windowed_by(SlidingWindows.of_time_difference_with_no_grace(10)).count()
    ),
    "session_count": lambda b: out(
        grouped(b).windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5)).count()
    ),
    "session_aggregate": lambda b: out(
        grouped(b)
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(4, 12))
        .aggregate(empty, append, merge_text)
    ),
    "session_reduce": lambda b: out(
        grouped(b).windowed_by(SessionWindows.of_inactivity_gap_and_grace(4, 6)).reduce(reduce_text)
    ),
    "tumbling_on_close": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_and_grace(10, 3))
        .emit_strategy(EmitStrategy.on_window_close())
        .aggregate(empty, append)
    ),
    "tumbling_on_close_throttled": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_and_grace(10, 3))
        .emit_strategy(EmitStrategy.on_window_close())
        .count()
    ),
    "hopping_on_close": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_and_grace(10, 3).advance_by(5))
        .emit_strategy(EmitStrategy.on_window_close())
        .count()
    ),
    "sliding_on_close": lambda b: out(
        grouped(b)
        .windowed_by(SlidingWindows.of_time_difference_and_grace(6, 3))
        .emit_strategy(EmitStrategy.on_window_close())
        .aggregate(empty, append)
    ),
    "session_on_close": lambda b: out(
        grouped(b)
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(4, 3))
        .emit_strategy(EmitStrategy.on_window_close())
        .aggregate(empty, append, merge_text)
    ),
    "suppress_window": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_and_grace(10, 4))
        .count()
        .suppress("until_window_closes")
    ),
    "suppress_session": lambda b: out(
        grouped(b)
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(4, 4))
        .count()
        .suppress(Suppressed.until_window_closes(unbounded()).with_name("last"))
    ),
    "suppress_time": lambda b: out(left(b).suppress(Suppressed.until_time_limit(8, unbounded()))),
    "suppress_records": lambda b: out(
        grouped(b).count().suppress(Suppressed.until_time_limit(1000, BufferConfig.max_records(2)))
    ),
    "suppress_bytes": lambda b: out(
        grouped(b)
        .reduce(reduce_text)
        .suppress(Suppressed.until_time_limit(1000, BufferConfig.max_bytes(100)))
    ),
    "table": lambda b: out(left(b)),
    "table_store": lambda b: out(b.table("in", materialized="kept")),
    "table_versioned": lambda b: out(b.table("in", materialized=versions("kept"))),
    "to_table": lambda b: out(from_in(b).select_key(lambda v: v).to_table()),
    "to_table_store": lambda b: out(from_in(b).to_table("kept")),
    "table_filter": lambda b: out(left(b).filter(lambda v: v != "b")),
    "table_filter_stored": lambda b: out(
        b.table("in", materialized="kept").filter_not(lambda v: v == "b", "filtered")
    ),
    "table_filter_kept": lambda b: out(
        b.table("in", materialized="kept").filter(lambda v: v != "b")
    ),
    "table_map_values": lambda b: out(
        left(b).map_values(lambda v: f"{v}!").map_values(lambda k, v: k + v, "mapped")
    ),
    "table_group_count": lambda b: out(left(b).group_by(lambda k, v: (v, k)).count()),
    "table_group_reduce": lambda b: out(
        left(b)
        .group_by(lambda k, v: (v, k))
        .reduce(lambda one, two: f"{one}+{two}", lambda one, two: f"{one}-{two}")
    ),
    "table_group_aggregate": lambda b: out(
        left(b)
        .filter(lambda v: v != "b")
        .group_by(lambda k, v: (v, k), Grouped.as_("grouped"))
        .aggregate(
            empty,
            lambda v, total: f"{total}+{v}",
            lambda v, total: f"{total}-{v}",
            named="sums",
        )
    ),
    "count_of_counts": lambda b: out(grouped(b).count().group_by(lambda k, v: (str(v), k)).count()),
    "window_regrouped": lambda b: out(
        grouped(b)
        .windowed_by(TimeWindows.of_size_with_no_grace(10))
        .count("windows")
        .map_values(str)
        .group_by(lambda k, v: (v, k.key))
        .count()
    ),
    "session_regrouped": lambda b: out(
        grouped(b)
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(4, 4))
        .count()
        .map_values(str)
        .group_by(lambda k, v: (v, k.key))
        .count()
    ),
    "table_join": lambda b: out(left(b).join(right(b), pair)),
    "table_left_join": lambda b: out(left(b).left_join(right(b), pair)),
    "table_outer_join": lambda b: out(
        left(b).outer_join(right(b), pair, materialized="joined", named="both")
    ),
    "table_join_chain": lambda b: out(
        left(b)
        .filter(lambda v: v != "x")
        .join(right(b).map_values(lambda v: f"{v}!"), pair)
        .left_join(b.stream("third").group_by_key().count(), pair)
        .group_by(lambda k, v: (v, k))
        .count()
    ),
    "table_join_versioned": lambda b: out(
        b.table("in", materialized=versions("l")).join(
            b.table("other", materialized=versions("r")), pair
        )
    ),
    "foreign_key_join": lambda b: out(left(b).join(right(b), foreign_key, pair)),
    "foreign_key_left_join": lambda b: out(left(b).left_join(right(b), foreign_key, pair)),
    "foreign_key_named": lambda b: out(
        left(b).join(
            right(b), foreign_key, pair, joined=TableJoined.as_("fk"), materialized="joined"
        )
    ),
    "stream_table_join": lambda b: from_in(b).join(right(b), pair).to("out"),
    "stream_table_left_join": lambda b: from_in(b).left_join(right(b), pair).to("out"),
    "stream_table_rekeyed": lambda b: (
        from_in(b).select_key(lambda v: v).left_join(right(b), pair).to("out")
    ),
    "stream_table_versioned": lambda b: (
        from_in(b).join(b.table("other", materialized=versions("kept")), pair).to("out")
    ),
    "stream_table_grace": lambda b: (
        from_in(b)
        .join(b.table("other", materialized=versions("kept")), pair, Joined(grace=6))
        .to("out")
    ),
    "stream_global_join": lambda b: (
        from_in(b).join(b.global_table("other"), lambda v: v, pair).to("out")
    ),
    "stream_global_left_join": lambda b: (
        from_in(b).left_join(b.global_table("other"), lambda v: v, pair).to("out")
    ),
    "stream_join": lambda b: (
        from_in(b)
        .join(from_other(b), pair, JoinWindows.of_time_difference_with_no_grace(5))
        .to("out")
    ),
    "stream_join_asymmetric": lambda b: (
        from_in(b)
        .join(
            from_other(b),
            pair,
            JoinWindows.of_time_difference_and_grace(5, 6).before(2).after(8),
        )
        .to("out")
    ),
    "stream_left_join": lambda b: (
        from_in(b)
        .left_join(from_other(b), pair, JoinWindows.of_time_difference_with_no_grace(5))
        .to("out")
    ),
    "stream_left_join_grace": lambda b: (
        from_in(b)
        .left_join(
            from_other(b),
            pair,
            JoinWindows.of_time_difference_and_grace(3, 6).before(1),
            StreamJoined.as_("kept"),
        )
        .to("out")
    ),
    "stream_outer_join": lambda b: (
        from_in(b)
        .outer_join(from_other(b), pair, JoinWindows.of_time_difference_and_grace(4, 2))
        .to("out")
    ),
    "stream_outer_join_named": lambda b: (
        from_in(b)
        .outer_join(
            from_other(b),
            pair,
            JoinWindows.of_time_difference_and_grace(4, 2).after(1),
            StreamJoined(name="joining"),
        )
        .to("out")
    ),
    "stream_outer_join_throttled": lambda b: (
        from_in(b)
        .outer_join(from_other(b), pair, JoinWindows.of_time_difference_and_grace(4, 2))
        .to("out")
    ),
    "stream_join_rekeyed": lambda b: (
        from_in(b)
        .select_key(lambda v: v)
        .left_join(
            from_other(b).map(lambda k, v: (v, k)),
            pair,
            JoinWindows.of_time_difference_with_no_grace(5),
        )
        .to("out")
    ),
    "stream_self_join": _stream_self_join,
    "rekeyed_joined_twice": _rekeyed_joined_twice,
    "process_values": lambda b: (
        from_in(b)
        .process_values(Twice)
        .group_by_key()
        .count()
        .to_stream()
        .map_values(str)
        .to("out")
    ),
    "transform_values": _transform_values,
    "transform_values_stored": _transform_values_stored,
    "process": _process,
}

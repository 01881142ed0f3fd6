"""Topologies for type checkers: `test_typing.py` runs mypy on this file, which is not executed.

Expected errors are marked with `type: ignore`; --strict reports a mark without an error.
"""

from typing import assert_type
from uuid import UUID

from ottla.streams import (
    AutoOffsetReset,
    Consumed,
    FixedKeyProcessor,
    Grouped,
    JoinWindows,
    KeyValueStore,
    KStream,
    KTable,
    Materialized,
    Processor,
    ProcessorContext,
    Produced,
    Record,
    Serde,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    WallclockTimestampExtractor,
    Windowed,
    col,
)

builder = StreamsBuilder()
lines = builder.stream("lines", Consumed.with_(Serdes.string(), Serdes.string()))
amounts = builder.stream("amounts", key=Serdes.string(), value=Serdes.long())
names = builder.table("names", key=Serdes.string(), value=Serdes.string())
places = builder.global_table("places", key=Serdes.integer(), value=Serdes.double())


def check_lambdas(stream: KStream[str, int]) -> None:
    """Check the types that follow from serdes and lambdas."""
    assert_type(lines, KStream[str, str])
    assert_type(lines.map_values(lambda v: len(v)), KStream[str, int])
    assert_type(lines.map_values(lambda k, v: [k, v]), KStream[str, list[str]])
    assert_type(lines.map(lambda k, v: (len(v), k)), KStream[int, str])
    assert_type(lines.flat_map_values(lambda v: v.split()), KStream[str, str])
    assert_type(lines.select_key(len), KStream[int, str])
    assert_type(stream.filter(lambda v: v > 1).filter_not(lambda k, v: k == "a"), KStream[str, int])
    assert_type(stream.filter(col("value") > 1), KStream[str, int])
    assert_type(
        stream.split().branch(lambda v: v > 1).default_branch(), dict[str, KStream[str, int]]
    )
    assert_type(lines.group_by(lambda v: len(v)).count(), KTable[int, int])
    assert_type(stream.group_by_key().reduce(lambda a, b: a + b), KTable[str, int])
    assert_type(stream.group_by_key().aggregate(float, lambda v, a: a + v), KTable[str, float])
    assert_type(stream.group_by_key().aggregate(int, lambda k, v, a: a + v), KTable[str, int])


def check_none(stream: KStream[str, str | None]) -> None:
    """Check None: serdes do not receive it, and aggregations skip it."""
    stream.to("out", Produced.with_(Serdes.string(), Serdes.string()))
    stream.to("out", value=Serdes.string())
    assert_type(stream.group_by_key(value=Serdes.string()).count(), KTable[str, int])
    grouped = stream.group_by(lambda k, v: len(k), Grouped.with_(Serdes.integer(), Serdes.string()))
    assert_type(grouped.reduce(lambda one, two: one + two), KTable[int, str])


def check_stores_and_options() -> None:
    """Check serdes by type, windowed cogroups, and extractors and suppliers as classes."""
    assert_type(Serdes.serde_from(int), Serde[int])
    assert_type(Serdes.list_serde(Serdes.uuid()), Serde[list[UUID | None]])
    windowed = amounts.group_by_key().cogroup(lambda value, total: f"{total}{value}")
    result = windowed.windowed_by(TimeWindows.of_size_with_no_grace("1 min")).aggregate(str)
    assert_type(result, KTable[Windowed[str], str])
    reset = AutoOffsetReset.latest()
    consumed = Consumed.with_(Serdes.string(), Serdes.long(), WallclockTimestampExtractor, reset)
    assert_type(builder.stream("x", consumed), KStream[str, int])


def check_windows_and_joins() -> None:
    """Check windowed keys and both sides of joins."""
    windowed = amounts.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 min"))
    assert_type(windowed.count(Materialized.as_("n")), KTable[Windowed[str], int])
    assert_type(windowed.count().to_stream(lambda k, v: k.window.start), KStream[int, int])
    gap = SessionWindows.of_inactivity_gap_with_no_grace("5 min")
    sessions = amounts.group_by_key().windowed_by(gap)
    result = sessions.aggregate(int, lambda v, a: v, lambda a, b: a)
    assert_type(result, KTable[Windowed[str], int])
    assert_type(amounts.join(names, lambda a, b: b * a), KStream[str, str])
    assert_type(
        amounts.join(places, lambda v: v, lambda k, v, place: place + v), KStream[str, float]
    )
    assert_type(amounts.left_join(names, lambda a, b: (a, b)), KStream[str, tuple[int, str | None]])
    windows = JoinWindows.of_time_difference_with_no_grace("1 min")
    assert_type(amounts.join(lines, lambda k, a, b: k + b * a, windows), KStream[str, str])
    assert_type(names.join(amounts.to_table(), lambda a, b: a * b), KTable[str, str])
    assert_type(amounts.to_table().join(names, lambda v: str(v), lambda a, b: b), KTable[str, str])
    assert_type(names.group_by(lambda k, v: (len(v), k)).count(), KTable[int, int])


class Lengths(Processor[object, str, str, int]):
    """A processor that accepts any key."""


class Counts(Processor[str, str, str, int]):
    """A processor with types for its context and its store, as in Java."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        """Get the store."""
        super().init(context)
        self.store: KeyValueStore[str, int] = context.get_state_store("counts")

    def process(self, record: Record[str, str]) -> None:
        """Count the record."""
        assert_type(self.store.get(record.key), int | None)
        for entry in self.store.all():
            assert_type(entry.value, int)


class Halves(FixedKeyProcessor[str, int, float]):
    """A processor that keeps the key."""


def check_processors() -> None:
    """Check the declared output types of processors, whose inputs may be wider than the stream."""
    assert_type(lines.process(Lengths), KStream[str, int])
    assert_type(amounts.process_values(Halves), KStream[str, float])
    amounts.process(Lengths)  # type: ignore[arg-type]


def check_errors() -> None:
    """Check that each mistake is an error on its line."""
    amounts.map_values(lambda v: v.upper())  # type: ignore[attr-defined]
    amounts.filter(lambda k, v: k > v)  # type: ignore[arg-type,misc]
    lines.map_values(lambda v: len(v)).to("out", value=Serdes.string())  # type: ignore[arg-type]
    amounts.left_join(names, lambda a, b: b.upper())  # type: ignore[union-attr]
    amounts.join(builder.table("x", key=Serdes.integer()), lambda a, b: a)  # type: ignore[arg-type]
    lines.merge(amounts)  # type: ignore[arg-type]
    lines.map_vals(lambda v: v)  # type: ignore[attr-defined]
    lines.map_values(lambda a, b, c: a)  # type: ignore[arg-type,misc]

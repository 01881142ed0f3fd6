"""Topologies as a type checker sees them: `test_typing.py` has mypy look at this file, nobody runs it.

What must be told as an error is marked with `type: ignore`, which --strict wants to be needed.
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


def what_is_told(stream: KStream[str, int]) -> None:
    """Types that follow from serdes and from lambdas."""
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


def what_may_be_none(stream: KStream[str, str | None]) -> None:
    """Serdes never see None, and aggregations leave it out."""
    stream.to("out", Produced.with_(Serdes.string(), Serdes.string()))
    stream.to("out", value=Serdes.string())
    assert_type(stream.group_by_key(value=Serdes.string()).count(), KTable[str, int])
    grouped = stream.group_by(lambda k, v: len(k), Grouped.with_(Serdes.integer(), Serdes.string()))
    assert_type(grouped.reduce(lambda one, two: one + two), KTable[int, str])


def what_stores_and_options_are_of() -> None:
    """Serdes by their types, cogroups by window, extractors and suppliers as classes."""
    assert_type(Serdes.serde_from(int), Serde[int])
    assert_type(Serdes.list_serde(Serdes.uuid()), Serde[list[UUID | None]])
    windowed = amounts.group_by_key().cogroup(lambda value, total: f"{total}{value}")
    found = windowed.windowed_by(TimeWindows.of_size_with_no_grace("1 min")).aggregate(str)
    assert_type(found, KTable[Windowed[str], str])
    reset = AutoOffsetReset.latest()
    consumed = Consumed.with_(Serdes.string(), Serdes.long(), WallclockTimestampExtractor, reset)
    assert_type(builder.stream("x", consumed), KStream[str, int])


def what_is_windowed_or_joined() -> None:
    """Keys of windows, and both sides of joins."""
    windowed = amounts.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 min"))
    assert_type(windowed.count(Materialized.as_("n")), KTable[Windowed[str], int])
    assert_type(windowed.count().to_stream(lambda k, v: k.window.start), KStream[int, int])
    gap = SessionWindows.of_inactivity_gap_with_no_grace("5 min")
    sessions = amounts.group_by_key().windowed_by(gap)
    found = sessions.aggregate(int, lambda v, a: v, lambda a, b: a)
    assert_type(found, KTable[Windowed[str], int])
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
    """Takes any key."""


class Counts(Processor[str, str, str, int]):
    """Writes its context and its store with their types, as in Java."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        """Open."""
        super().init(context)
        self.store: KeyValueStore[str, int] = context.get_state_store("counts")

    def process(self, record: Record[str, str]) -> None:
        """Count."""
        assert_type(self.store.get(record.key), int | None)
        for entry in self.store.all():
            assert_type(entry.value, int)


class Halves(FixedKeyProcessor[str, int, float]):
    """Keeps the key."""


def what_processors_forward() -> None:
    """What they say themselves; they may take more than the stream has."""
    assert_type(lines.process(Lengths), KStream[str, int])
    assert_type(amounts.process_values(Halves), KStream[str, float])
    amounts.process(Lengths)  # type: ignore[arg-type]


def what_is_wrong() -> None:
    """Each is told where it is written."""
    amounts.map_values(lambda v: v.upper())  # type: ignore[attr-defined]
    amounts.filter(lambda k, v: k > v)  # type: ignore[arg-type,misc]
    lines.map_values(lambda v: len(v)).to("out", value=Serdes.string())  # type: ignore[arg-type]
    amounts.left_join(names, lambda a, b: b.upper())  # type: ignore[union-attr]
    amounts.join(builder.table("x", key=Serdes.integer()), lambda a, b: a)  # type: ignore[arg-type]
    lines.merge(amounts)  # type: ignore[arg-type]
    lines.map_vals(lambda v: v)  # type: ignore[attr-defined]
    lines.map_values(lambda a, b, c: a)  # type: ignore[arg-type,misc]

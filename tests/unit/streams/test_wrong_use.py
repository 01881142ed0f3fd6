"""What is written wrong is told where it is written, with what to write instead."""

from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    Grouped,
    JoinWindows,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Processor,
    Produced,
    Record,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
)


@pytest.fixture
def builder() -> StreamsBuilder:
    """Return a builder."""
    return StreamsBuilder()


@pytest.fixture
def stream(builder: StreamsBuilder) -> Any:
    """Return a stream; Any, as type checkers would tell of most that follows."""
    return builder.stream("stream")


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        (KTable, "to", r"a stream, to_stream\(\)\.to\(…\)"),
        (KTable, "selectKey", r"to_stream\(\)\.select_key\(…\)"),
        (KTable, "count", r"group its entries first, group_by\("),
        (KTable, "windowed_by", "streams have windows"),
        (KStream, "count", r"group it first, group_by_key\(\)\.count\(…\)"),
        (KStream, "windowedBy", r"group_by_key\(\)\.windowed_by\(…\)"),
        (KStream, "transformValues", r"process_values\(…\)"),
        (KStream, "branch", r"split\(\)\.branch\(…\)"),
        (KStream, "through", r"write to\(topic\)"),
        (KGroupedStream, "to_stream", "that makes a table, which has to_stream"),
    ],
)
def test_a_name_of_another_class_is_told_how_to_get_there(
    kind: Any, name: str, sentence: str
) -> None:
    """A table is no stream, and a group is no table yet."""
    with pytest.raises(AttributeError, match=sentence):
        getattr(kind, name)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda s: s.map_values(str, Materialized.as_("x")), "not by a Materialized"),
        (lambda s: s.to("out", Consumed()), "told with a Produced.*not a Consumed"),
        (lambda s: s.group_by(str, "name"), "told with a Grouped.*not 'name'"),
        (lambda s: s.group_by_key().count(Grouped.as_("x")), "told with a Materialized"),
        (lambda s: s.repartition(4), "told with a Repartitioned.*not 4"),
        (lambda s: s.print("label"), "told with a Printed"),
        (lambda s: s.split().branch(bool, 3), "told with a Branched"),
        (lambda s: s.group_by_key().windowed_by("5 min"), "windowed by TimeWindows"),
        (
            lambda s: s.group_by_key().windowed_by(JoinWindows.of_time_difference_with_no_grace(5)),
            "not by JoinWindows",
        ),
        (
            lambda s: (
                s.group_by_key()
                .windowed_by(TimeWindows.of_size_with_no_grace(5))
                .emit_strategy("close")
            ),
            r"EmitStrategy\.on_window_close\(\)",
        ),
        (lambda s: s.group_by_key().reduce(lambda k, v, a: a), "a reducer takes 2 arguments"),
        (
            lambda s: s.group_by_key().aggregate(0, lambda v, a: a + v),
            "an initializer is a function, lambda",
        ),
        (lambda s: s.merge(StreamsBuilder().stream("x")), "one StreamsBuilder"),
        (lambda s: s.join(StreamsBuilder().table("x"), max), "one StreamsBuilder"),
        (lambda s: s.to_table().join(s, max), "with a table, not with a KStream"),
        (lambda s: s.to_table().suppress("until_time_limit"), "'until_window_closes', or"),
    ],
)
def test_an_option_in_a_wrong_place_is_told(stream: Any, write: Any, sentence: str) -> None:
    """With the kind that belongs there."""
    with pytest.raises((TypeError, ValueError, TopologyError), match=sentence):
        write(stream)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda b: b.stream("in", key=Serdes.string), r"not string: write Serdes\.string\(\)"),
        (lambda b: b.stream("in", value=str), r"not str: write Serdes\.serde_from\(str\)"),
        (lambda b: b.stream("in", Consumed.with_(Serdes.string, Serdes.long)), "not string"),
        (lambda b: b.stream("in").to("out", Produced(value=int)), "not int"),
        (lambda b: b.stream("in", Produced()), "told with a Consumed.*not a Produced"),
        (lambda b: b.stream([]), "a stream reads a topic"),
        (lambda b: b.stream(3), "not 3"),
        (lambda b: b.table(["a", "b"]), "a table is read from one topic"),
        (TopologyTestDriver, r"which builder\.build\(\) returns; not a StreamsBuilder"),
    ],
)
def test_what_a_builder_does_not_take_is_told(
    builder: StreamsBuilder, write: Any, sentence: str
) -> None:
    """Before the first record."""
    with pytest.raises((TypeError, ValueError, TopologyError), match=sentence):
        write(builder)


def test_two_tables_are_not_kept_in_one_store(builder: StreamsBuilder) -> None:
    """Each would read what the other one wrote; the parts of a cogroup do share theirs."""
    one, two = (builder.stream(topic).group_by_key() for topic in ("one", "two"))
    one.cogroup(lambda v, a: a + v).cogroup(two, lambda v, a: a - v).aggregate(int, "both")
    builder.build()
    one.count("counts")
    two.count("counts")
    with pytest.raises(TopologyError, match=r"store counts is kept by KSTREAM-AGG.*another name"):
        builder.build()


@pytest.mark.parametrize(
    ("write", "made"),
    [
        (lambda s: s.map(lambda k, v: v), "not 7"),
        (lambda s: s.flat_map(lambda k, v: (k, v)), "not 'key'"),
    ],
)
def test_a_mapper_that_makes_no_pair_is_told(
    builder: StreamsBuilder, stream: Any, write: Any, made: str
) -> None:
    """At its first record."""
    write(stream).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("stream")
        with pytest.raises(TypeError, match=f"a mapper makes a pair.*{made}"):
            topic.pipe_input("key", 7)


class Forgetful(Processor[Any, Any, Any, Any]):
    """Does not keep its context."""

    def init(self, context: Any) -> None:
        """Forget it."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward."""
        self.context.forward(record)


class Pairing(Processor[Any, Any, Any, Any]):
    """Forwards what is no record."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward a pair."""
        pair: Any = record.key, record.value
        self.context.forward(pair)


@pytest.mark.parametrize(
    ("supplier", "sentence"),
    [
        (Forgetful, r"Forgetful has no context; call super\(\)\.init\(context\) in its init"),
        (Pairing, r"forwards \('a', 1\): write forward\(Record\(key, value, timestamp\)\)"),
    ],
)
def test_what_a_processor_forgets_is_told(
    builder: StreamsBuilder, supplier: Any, sentence: str
) -> None:
    """At its first record."""
    builder.stream("in").process(supplier).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises((AttributeError, TypeError), match=sentence):
            topic.pipe_input("a", 1)

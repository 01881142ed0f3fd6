"""Mistakes are reported by the call that makes them, with the correct form."""

import dataclasses
import functools
import re
import struct
from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    DeserializationError,
    Grouped,
    JoinWindows,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    SerializationError,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
)

_TEXT = Serdes.string()
_WITHIN = JoinWindows.of_time_difference_with_no_grace(5)


@pytest.fixture
def builder() -> StreamsBuilder:
    """Return a builder."""
    return StreamsBuilder()


@pytest.fixture
def stream(builder: StreamsBuilder) -> Any:
    """Return a stream of type Any, because type checkers would reject most of the tests."""
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
def test_a_method_of_another_class_is_rejected_with_the_way_to_it(
    kind: Any, name: str, sentence: str
) -> None:
    """A table is not a stream, and a group is not yet a table."""
    with pytest.raises(AttributeError, match=sentence):
        getattr(kind, name)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda s: s.map_values(str, Materialized.as_("x")), "not by a Materialized"),
        (lambda s: s.to("out", Consumed()), "configured with a Produced.*not a Consumed"),
        (lambda s: s.group_by(str, "name"), "configured with a Grouped.*not 'name'"),
        (lambda s: s.group_by_key().count(Grouped.as_("x")), "configured with a Materialized"),
        (lambda s: s.repartition(4), "configured with a Repartitioned.*not 4"),
        (lambda s: s.join(s, max, "5 min"), r"windows are JoinWindows\.of_time_d.*, not '5 min'"),
        (lambda s: s.join(s, max, windows=5), r"windows are JoinWindows\.of_time_d.*, not 5"),
        (lambda s: s.left_join(s, max), r"its windows are missing: add JoinWindows\.of_time_diff"),
        (lambda s: s.outer_join(s, _WITHIN, max), "the joiner comes before the windows"),
        (lambda s: s.join(s.to_table(), max, _WITHIN), "a table has no windows: remove them"),
        (lambda s: s.print("label"), "configured with a Printed"),
        (lambda s: s.split().branch(bool, 3), "configured with a Branched"),
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
def test_an_option_in_the_wrong_place_is_rejected(stream: Any, write: Any, sentence: str) -> None:
    """The error names the expected type."""
    with pytest.raises((TypeError, ValueError, TopologyError), match=sentence):
        write(stream)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda b: b.stream("in", key=Serdes.string), r"not string: use Serdes\.string\(\)"),
        (lambda b: b.stream("in", value=str), r"not str: use Serdes\.serde_from\(str\)"),
        (lambda b: b.stream("in", Consumed.with_(Serdes.string, Serdes.long)), "not string"),
        (lambda b: b.stream("in").to("out", Produced(value=int)), "not int"),
        (lambda b: b.stream("in", Produced()), "configured with a Consumed.*not a Produced"),
        (lambda b: b.stream([]), "a stream reads a topic"),
        (lambda b: b.stream(3), "not 3"),
        (lambda b: b.table(["a", "b"]), "a table is read from one topic"),
        (lambda b: b.stream("in").to("out", serde=_TEXT), r"takes no serde=: .* to\(…, key=…, va"),
        (
            lambda b: b.stream("in", value_serde=_TEXT),
            r"stream\(\) takes no value_serde=: .*value=…",
        ),
        (lambda b: b.table("in", key_serde=_TEXT), r"table\(\) takes no key_serde=: .*, key=…, "),
        (lambda b: b.global_table("in", serde=_TEXT), r"global_table\(\) takes no serde=: "),
        (lambda b: b.stream("in").repartition(serde=_TEXT), r"repartition\(\) takes no serde=: "),
        (lambda b: b.stream("in").group_by_key(serde=_TEXT), r"group_by_key\(\) takes no serde=: "),
        (lambda b: b.stream("in").group_by(str, serde=_TEXT), r"group_by\(\) takes no serde=: "),
        (
            lambda b: b.stream("in").group_by_key().count(serde=_TEXT),
            r"Materialized\.with_\(key, v",
        ),
        (lambda b: b.stream("in").join(b.table("t"), max, serde=_TEXT), r"takes no serde=.*Joined"),
        (TopologyTestDriver, r"which builder\.build\(\) returns; not a StreamsBuilder"),
    ],
)
def test_an_invalid_argument_of_a_builder_is_rejected(
    builder: StreamsBuilder, write: Any, sentence: str
) -> None:
    """The call raises, before the first record."""
    with pytest.raises((TypeError, ValueError, TopologyError), match=sentence):
        write(builder)


async def slow(key: Any, value: Any) -> Any:
    """Return a value as a service would."""
    return key, value


async def slow_values(value: Any) -> Any:
    """Yield values as a service would."""
    yield value


class SlowCall:
    """An object with an async call."""

    async def __call__(self, value: Any) -> Any:
        """Return the value."""
        return value


_ASYNC_FUNCTIONS: list[tuple[str, Any]] = [
    ("a predicate", lambda b: b.stream("in").filter(slow)),
    ("a predicate", lambda b: b.stream("in").split().branch(slow)),
    ("an action", lambda b: b.stream("in").foreach(slow)),
    ("a mapper", lambda b: b.stream("in").map(slow)),
    ("a value mapper", lambda b: b.stream("in").map_values(SlowCall())),
    ("a value mapper", lambda b: b.stream("in").map_values(functools.partial(slow, 1))),
    ("a value mapper", lambda b: b.stream("in").flat_map_values(slow_values)),
    ("a key selector", lambda b: b.stream("in").group_by(slow)),
    ("a reducer", lambda b: b.stream("in").group_by_key().reduce(slow)),
    ("an aggregator", lambda b: b.stream("in").group_by_key().aggregate(int, slow)),
    ("a joiner", lambda b: b.stream("in").join(b.table("table"), slow)),
    ("a timestamp extractor", lambda b: b.stream("in", timestamp=slow)),
    ("a topic name extractor", lambda b: b.stream("in").to(slow)),
    ("a partitioner", lambda b: b.stream("in").to("out", partitioner=slow)),
]


@pytest.mark.parametrize(("subject", "write"), _ASYNC_FUNCTIONS)
def test_an_async_function_is_rejected(builder: StreamsBuilder, subject: str, write: Any) -> None:
    """Its result is a coroutine, which is true for every record and is never awaited."""
    with pytest.raises(TypeError, match=f"{subject} cannot be the async function.* with def"):
        write(builder)


class OfKeyAndValue(Processor[Any, Any, Any, Any]):
    """A processor with the parameters of Kafka's old interface."""

    def process(self, key: Any, value: Any) -> None:  # type: ignore[override]
        """Ignore the record."""


class WithoutContext(Processor[Any, Any, Any, Any]):
    """A processor whose init has no parameter."""

    def init(self) -> None:  # type: ignore[override]
        """Do nothing."""

    def process(self, record: Record[Any, Any]) -> None:
        """Ignore the record."""


class SlowProcessor(Processor[Any, Any, Any, Any]):
    """A processor with an async method."""

    async def process(self, record: Record[Any, Any]) -> None:  # type: ignore[override]
        """Ignore the record."""


_PROCESSORS: list[tuple[Any, str]] = [
    (
        OfKeyAndValue,
        r"has process\(self, key, value\): write process\(self, record\), and read reco",
    ),
    (
        lambda: OfKeyAndValue(),
        r"OfKeyAndValue has process\(self, key, value\): write process\(self,",
    ),
    (WithoutContext, r"WithoutContext has init\(self\): write init\(self, context\)"),
    (SlowProcessor, r"SlowProcessor\.process cannot be the async function"),
]


@pytest.mark.parametrize(("supplier", "sentence"), _PROCESSORS)
@pytest.mark.parametrize(
    "add",
    [
        lambda supplier: StreamsBuilder().stream("in").process(supplier),
        lambda supplier: StreamsBuilder().stream("in").process_values(supplier),
        lambda supplier: Topology().add_source("s", "in").add_processor("p", supplier, "s"),
        lambda supplier: StreamsBuilder().add_global_store(
            Stores.key_value("store"), "in", supplier
        ),
    ],
)
def test_a_processor_with_other_parameters_is_rejected(
    add: Any, supplier: Any, sentence: str
) -> None:
    """The call that adds the processor raises, not the first record."""
    with pytest.raises((TypeError, TopologyError), match=sentence):
        add(supplier)


def test_a_misspelt_store_of_a_processor_is_reported(builder: StreamsBuilder) -> None:
    """The error names the store that was probably meant."""
    builder.add_state_store(Stores.key_value("counts"))
    builder.stream("in").process(Forgetful, "count")
    with pytest.raises(TopologyError, match=r"add_state_store; did you mean counts\?"):
        builder.build()


@dataclasses.dataclass
class City:
    """A value."""

    name: str


@pytest.mark.parametrize("kind", [City("Prag"), "City", 3, {"name": str}])
def test_a_value_instead_of_a_class_is_rejected(kind: Any) -> None:
    """Otherwise the serde would read plain values."""
    with pytest.raises(TypeError, match=r"Serdes\.json takes a class, such as \w+, not "):
        Serdes.json(kind)


def test_two_tables_cannot_share_a_store(builder: StreamsBuilder) -> None:
    """Each would read the entries of the other; the parts of a cogroup do share theirs."""
    one, two = (builder.stream(topic).group_by_key() for topic in ("one", "two"))
    one.cogroup(lambda v, a: a + v).cogroup(two, lambda v, a: a - v).aggregate(int, "both")
    builder.build()
    one.count("counts")
    two.count("counts")
    with pytest.raises(
        TopologyError, match=r"store counts already belongs to KSTREAM-AGG.*another name"
    ):
        builder.build()


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (lambda s: s.map(lambda k, v: v), "not 7"),
        (lambda s: s.flat_map(lambda k, v: (k, v)), "not 'key'"),
    ],
)
def test_a_mapper_that_returns_no_pair_fails(
    builder: StreamsBuilder, stream: Any, write: Any, shown: str
) -> None:
    """The first record raises."""
    write(stream).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("stream")
        with pytest.raises(TypeError, match=f"a mapper must return a pair.*{shown}"):
            topic.pipe_input("key", 7)


class Forgetful(Processor[Any, Any, Any, Any]):
    """A processor that does not keep its context."""

    def init(self, context: Any) -> None:
        """Ignore the context."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward the record."""
        self.context.forward(record)


class Pairing(Processor[Any, Any, Any, Any]):
    """A processor that forwards a pair instead of a record."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward a pair."""
        pair: Any = record.key, record.value
        self.context.forward(pair)


class SlowPunctuator(Processor[Any, Any, Any, Any]):
    """A processor that schedules an async function."""

    def init(self, context: Any) -> None:
        """Schedule it."""

        async def tick(_: int) -> None:
            """Do nothing."""

        context.schedule(1000, PunctuationType.WALL_CLOCK_TIME, tick)


def test_an_async_punctuator_is_rejected(builder: StreamsBuilder) -> None:
    """The call that schedules it raises."""
    builder.stream("in").process(SlowPunctuator)
    with pytest.raises(TypeError, match="a punctuator cannot be the async function 'tick'"):
        TopologyTestDriver(builder.build())


@pytest.mark.parametrize(
    ("supplier", "sentence"),
    [
        (Forgetful, r"Forgetful has no context; call super\(\)\.init\(context\) in its init"),
        (Pairing, r"forwards \('a', 1\): write forward\(Record\(key, value, timestamp\)\)"),
    ],
)
def test_mistakes_in_a_processor_are_reported(
    builder: StreamsBuilder, supplier: Any, sentence: str
) -> None:
    """The first record raises."""
    builder.stream("in").process(supplier).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises((AttributeError, TypeError), match=sentence):
            topic.pipe_input("a", 1)


@pytest.mark.parametrize(
    ("serdes", "sentence"),
    [
        (
            {"key": Serdes.string()},
            r"the value of the record of in-0 at offset 0 cannot be read by Serdes\.json: .*; it is b'v'; the "
            r"source has no serde for values, so the default Serdes\.json was used: set value=",
        ),
        (
            {"value": Serdes.string()},
            r"the key of the record of in-0 at offset 0 cannot be read by Serdes\.json: .*; it is b'k'; the "
            r"source has no serde for keys, so the default Serdes\.json was used: set key=",
        ),
        (
            {"key": Serdes.string(), "value": Serdes.long()},
            r"cannot be read by Serdes\.long: a long has 8 bytes, not 1; it is b'v'$",
        ),
        (
            {"key": Serdes.string(), "value": Serdes.double()},
            r"cannot be read by Serdes\.double: a double has 8 bytes, not 1; it is b'v'$",
        ),
        (
            {"key": Serdes.session_windowed(Serdes.string()), "value": Serdes.string()},
            "the key of .*: a session key has at least 16 bytes, not 1; it is b'k'$",
        ),
    ],
)
def test_a_wrong_serde_of_a_source_is_reported(
    builder: StreamsBuilder, serdes: Any, sentence: str
) -> None:
    """The error has key or value, the topic, the bytes, and the default serde if it was used."""
    builder.stream("in", **serdes).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", Serdes.string(), Serdes.string())
        with pytest.raises(DeserializationError) as raised:
            topic.pipe_input("k", "v")
    assert re.search(sentence, str(raised.value))


@pytest.mark.parametrize(
    ("value", "serdes", "sentence"),
    [
        (7, {"value": Serdes.string()}, r"the value of a record for out .* its type is int$"),
        (
            object(),
            {},
            r"cannot be written by Serdes\.json: .*; its type is object; the sink has no serde for values, so "
            r"the default Serdes\.json was used: set value=",
        ),
    ],
)
def test_a_wrong_serde_of_a_sink_is_reported(
    builder: StreamsBuilder, value: Any, serdes: Any, sentence: str
) -> None:
    """The error has key or value, the topic, the type, and the default serde if it was used."""
    builder.stream("in").map_values(lambda _: value).to("out", **serdes)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(SerializationError) as raised:
        driver.create_input_topic("in").pipe_input("k", "v")
    assert re.search(sentence, str(raised.value))


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (
            lambda s: s.map(lambda v: "kv"),
            "a mapper must return a pair, .*not 'kv'; use map_values or",
        ),
        (lambda s: s.map(lambda v: {"a": 1, "b": 2}), "a mapper must return a pair, .*not {'a'"),
        (lambda s: s.flat_map(lambda v: "kv"), "a mapper must return a pair, .*not 'k'"),
        (lambda s: s.flat_map(lambda v: ["kv"]), "a mapper must return a pair, .*not 'kv'"),
        (lambda s: s.flat_map(lambda v: 5), r"flat_map must return a list of pairs .*, not 5"),
        (
            lambda s: s.flat_map_values(lambda v: 5),
            "flat_map_values must return a list of values, .*not 5",
        ),
        (
            lambda s: s.to_table().group_by(lambda v: "kv").count().to_stream(),
            "a mapper must return a pair, .*not 'kv'",
        ),
    ],
)
def test_a_mapper_that_returns_a_text_instead_of_a_pair_fails(
    builder: StreamsBuilder, write: Any, sentence: str
) -> None:
    """Otherwise a text of two letters would be split into a key and a value."""
    write(builder.stream("in")).to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(TypeError, match=sentence):
        driver.create_input_topic("in").pipe_input("k", "v")


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda s, t: s.group_by_key().count(key=_TEXT), r"count\(\) takes no key=: .*count\(…, "),
        (lambda s, t: s.group_by_key().count("store", value=_TEXT), r"count\(\) takes no value="),
        (lambda s, t: s.group_by_key().reduce(max, value=_TEXT), r"reduce\(\) takes no value="),
        (
            lambda s, t: s.group_by_key().aggregate(int, lambda v, a: a, value=_TEXT),
            r"aggregate\(\) takes no value=.*Materialized\.with_\(key, value\)",
        ),
        (
            lambda s, t: s.group_by_key().windowed_by(TimeWindows(5, 5)).count(value=_TEXT),
            r"count\(\) takes no value=.*Materialized\.with_\(key, value\)",
        ),
        (
            lambda s, t: t.group_by(lambda k, v: (k, v)).count(value=_TEXT),
            r"count\(\) takes no value=.*Materialized\.with_\(key, value\)",
        ),
        (
            lambda s, t: s.group_by_key().cogroup(lambda v, a: a).aggregate(int, value=_TEXT),
            r"aggregate\(\) takes no value=.*Materialized\.with_\(key, value\)",
        ),
        (lambda s, t: t.map_values(str, value=_TEXT), r"map_values\(\) takes no value="),
        (lambda s, t: s.to_table(key=_TEXT), r"to_table\(\) takes no key="),
        (
            lambda s, t: s.join(t, max, value=_TEXT),
            r"join with a table takes no value=: .*joined=Joined\.with_\(key, value, other_value\)",
        ),
        (
            lambda s, t: s.join(s, max, JoinWindows(1, 1), key=_TEXT),
            r"join with a stream takes no key=: .*joined=StreamJoined\.with_\(key, value, other_v",
        ),
        (
            lambda s, t: t.left_join(t, max, value=_TEXT),
            r"join of tables takes no value=: .*materialized=Materialized\.with_\(key, value\)",
        ),
    ],
)
def test_a_serde_in_the_wrong_place_is_rejected_with_the_right_one(
    builder: StreamsBuilder, write: Any, sentence: str
) -> None:
    """`key=` and `value=` are for sources, sinks and groups; tables and joins have options."""
    with pytest.raises(TypeError, match=sentence):
        write(builder.stream("in"), builder.table("table"))


def test_an_unknown_keyword_is_rejected_by_python(builder: StreamsBuilder) -> None:
    """Names that no operator has raise Python's own error."""
    counting: Any = builder.stream("in").group_by_key().count
    with pytest.raises(TypeError, match="unexpected keyword argument 'qwertz'"):
        counting(qwertz=1)


@pytest.mark.parametrize(
    ("aggregate", "note"),
    [
        (
            lambda g: g.aggregate(int, lambda v, a: object(), "kept"),
            "The store 'kept' writes keys with Serdes.json, the default, and values with Serdes.json, the "
            "default: give its table others with materialized=Materialized.with_(key, value).",
        ),
        (
            lambda g: g.aggregate(
                int, lambda v, a: "text", Materialized("kept", value=Serdes.long())
            ),
            "The store 'kept' writes keys with Serdes.json, the default, and values with Serdes.long: give",
        ),
    ],
)
def test_a_wrong_serde_of_a_store_is_reported(
    builder: StreamsBuilder, aggregate: Any, note: str
) -> None:
    """The note of the error has the store, its serdes, and whether they are the default."""
    aggregate(builder.stream("in").group_by_key())
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises((TypeError, struct.error)) as raised:
            topic.pipe_input("k", 1)
    (message,) = raised.value.__notes__
    assert message.startswith(
        "Raised at the record of topic in, partition 0, offset 0, in KSTREAM-AGG"
    )
    assert note in message


def test_a_failing_function_with_a_store_is_reported_as_the_users(
    builder: StreamsBuilder,
) -> None:
    """The advice about serdes is only for errors of a store, not of an aggregator."""
    builder.stream("in").group_by_key().aggregate(int, lambda v, a: v / 0, "kept")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ZeroDivisionError) as raised:
            topic.pipe_input("k", 1)
    assert "The store" not in raised.value.__notes__[0]

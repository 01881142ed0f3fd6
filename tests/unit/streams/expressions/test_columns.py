"""Column expressions in a topology."""

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams import Consumed, Serdes, StreamsBuilder, TopologyTestDriver
from ottla.streams.expressions.columns import (
    Column,
    Evaluated,
    coalesce,
    col,
    compiled,
    lit,
    struct,
    when,
)
from ottla.streams.model.errors import StreamsError, TopologyError
from ottla.streams.task.task import TaskSettings

_STRING, _LONG = Serdes.string(), Serdes.long()


@dataclass
class Click:
    """A visit to a page."""

    user: str
    page: str | None
    seconds: int


def _of(expression: Column, **value: Any) -> Any:
    return compiled(expression)("k", value)


def test_expressions_replace_functions() -> None:
    """Filter, map, select, group and split accept them; fields belong to a dict or an object."""
    builder = StreamsBuilder()
    clicks = builder.stream("clicks", key=_STRING, value=Serdes.json(Click))
    filtered = clicks.filter(col("value.seconds") > 2).filter_not(col("value.page") == "login")
    filtered.map_values(struct(who=col("value.user").upper(), key=col("key"))).to("kept")
    filtered.group_by(col("value.user"), key=_STRING, value=Serdes.json(Click)).count(
        "per-user"
    ).to_stream().filter(col("value") > 1).to("counts", key=_STRING, value=_LONG)
    clicks.select_key(col("value.page")).split().branch(
        col("key").is_null(), "none"
    ).default_branch()
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("clicks", _STRING, Serdes.json(Click))
        for click in (Click("a", "x", 3), Click("a", None, 9), Click("b", "login", 9)):
            topic.pipe_input("k", click)
        topic.pipe_input("k", Click("c", "x", 1))
        kept_values = driver.create_output_topic("kept", _STRING).read_values_to_list()
        counts = driver.create_output_topic("counts", _STRING, _LONG).read_key_values_to_list()
    # A condition that is neither true nor false counts as false: no page is not the page login.
    assert kept_values == [{"who": "A", "key": "k"}] * 2
    assert counts == [("a", 2)]


def test_expressions_as_extractor_topic_partitioner_and_foreign_key() -> None:
    """An expression sets the time at a source, topic and partition at a sink, or a foreign key."""
    builder = StreamsBuilder()
    serde = Serdes.json()
    consumed = Consumed.with_(_STRING, serde, timestamp_extractor=col("value.at"))
    visits = builder.stream("visits", consumed)
    visits.map((col("value.user"), col("value.page"))).to(
        col("value").concat("-log"), key=_STRING, value=_STRING, partitioner=col("value").length()
    )
    table = visits.to_table()
    table.group_by((col("value.page"), col("value.user")), key=_STRING, value=_STRING).count(
        "pages"
    )
    users = builder.table("users", key=_STRING, value=_STRING)
    named = table.join(users, col("value.user"), lambda visit, name: f"{name}: {visit['page']}")
    named.to_stream().to("named", key=_STRING, value=_STRING)
    with TopologyTestDriver(builder.build(), TaskSettings("app", partitions=9)) as driver:
        driver.create_input_topic("users", _STRING, _STRING).pipe_input("a", "Ann")
        topic = driver.create_input_topic("visits", _STRING, serde)
        topic.pipe_input("1", {"user": "a", "page": "home", "at": 7_000})
        (logged,) = driver.produced("home-log")
        assert (logged.key, logged.value, logged.timestamp) == (b"a", b"home", 7_000)
        assert logged.partition == 4
        values = driver.create_output_topic("named", _STRING, _STRING).read_values_to_list()
        assert values == ["Ann: home"]
        assert driver.store("pages").get("home") == 1
        with pytest.raises(StreamsError, match="extractor 'Column' returned 'soon', of type str"):
            topic.pipe_input("1", {"user": "a", "page": "home", "at": "soon"})


@pytest.mark.parametrize("pair", [(col("key"),), (col("key"), 1), col("value"), (1, 2)])
def test_an_invalid_pair_of_expressions_is_rejected(pair: Any) -> None:
    """The error is raised when the topology is built, and contains an example."""
    stream = StreamsBuilder().stream("in")
    with pytest.raises(
        TypeError, match=r"a pair of Columns such as \(col\('key'\), col\('value'\)\)"
    ):
        stream.map(pair)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("value.i") + 1, 8),
        (1 - col("value.i") * 2, -13),
        (col("value.i") / 2, 3.5),
        (col("value.i") / 0, None),
        (-col("value.i") % 4, -3),
        (10 % col("value.none"), None),
        (abs(lit(-3)), 3),
        (col("value.none") == None, None),  # noqa: E711
        (col("value.none").is_null() & (col("value.i") >= 7), True),
        ((col("value.none") == 1) | lit(True), True),
        ((col("value.none") == 1) & lit(False), False),
        (~(col("value.none") == 1), None),
        (col("value.i").is_in(1, 7), True),
        (col("value.i").is_not_null(), True),
        (coalesce(col("value.none"), col("value.s")), "Ab "),
        (when(col("value.i") < 7, "small", "large"), "large"),
        (when(col("value.none") < 7, "small"), None),
        (col("value.s").trim().lower().concat("!"), "ab!"),
        (col("value.s").substring(-2, 1), "b"),
        (col("value.s").length(), 3),
        (col("value.nested.deep"), 5),
        (col("value.nested.no.further"), None),
        (lit(float("nan")) == float("nan"), True),
        (lit(float("nan")) > float("inf"), True),
    ],
)
def test_an_expression_evaluates_as_in_sql(expression: Column, expected: Any) -> None:
    """None propagates; a division by zero is None; NaN is the largest number."""
    assert _of(expression, i=7, s="Ab ", none=None, nested={"deep": 5}) == expected


def test_mistakes_in_expressions_are_reported() -> None:
    """Examples are Python's `and`, an unknown root, a wrong type, an overflow, and a joiner."""
    with pytest.raises(TypeError, match=r"use &, \| and ~"):
        bool(col("value.a") == 1 and col("value.b") == 2)
    with pytest.raises(ValueError, match="begins with key or value"):
        col("amount")
    with pytest.raises(TypeError, match="arithmetic takes numbers"):
        _of(col("value.a") + 1, a="x")
    with pytest.raises(OverflowError, match="more than 64 bits"):
        _of(col("value.a") * col("value.a"), a=1 << 40)
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="a Column sees one record"):
        builder.stream("a").join(builder.table("b"), col("value"))


def test_an_expression_can_be_shown_and_pickled() -> None:
    """Its text is its source, and another process can evaluate it."""
    expression = (col("value.a") > 1) & ~col("key").starts_with("x")
    output = "((col('value.a') > 1) & not(starts_with(col('key'), 'x')))"
    assert str(expression) == output
    assert str(struct(n=lit("x"))) == "struct(n='x')"
    again = pickle.loads(pickle.dumps(Evaluated(expression)))
    assert again("k", {"a": 2}) is True
    assert str(again.column) == output

"""The selection of steps that run in the JVM, and the reasons for the others."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ottla.streams import Serdes, StreamsBuilder, TimeWindows, col, lit, struct, when
from ottla.streams.expressions.columns import Column, OfSpark
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.model.errors import TopologyError
from ottla.streams.operators.stateless import Filter
from ottla.streams.serdes import Serde
from ottla.streams.spark.catalyst.column_types import (
    RunsInPython,
    Scalar,
    Structure,
    type_of,
    type_read,
)
from ottla.streams.spark.catalyst.steps import Conversion, LoweredSource, lower_layout
from ottla.streams.spark.query.explain import explain
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Topology

_TEXT = Serdes.string()
_ANY: Serde[Any] = Serdes.json()


@dataclass
class Sale:
    """A class for JSON values."""

    shop: str
    amount: int
    price: float = 0.0
    tags: list[Any] | None = None

    @property
    def total(self) -> float:
        """A property that only Python can compute."""
        return self.amount * self.price


_SALE = Serdes.json(Sale)


def _lowered(add: Callable[[Any], Any], value: Serde[Any] = _TEXT) -> LoweredSource | None:
    builder = StreamsBuilder()
    add(builder.stream("in", key=_TEXT, value=value))
    layout = lay_out([Application(builder.build(), TaskSettings("app"))], {"in": 1})
    result = lower_layout(layout)
    return result[0] if result else None


def test_a_chain_of_expressions_is_lowered_from_source_to_sink() -> None:
    """Each step is lowered once; unchanged bytes are written as they were read."""

    def add(stream: Any) -> None:
        filtered = stream.filter(col("value").length() > 3).filter_not(col("key").is_null())
        filtered.map_values(col("value").length()).to("out", key=_TEXT, value=Serdes.long())

    actual = _lowered(add)
    assert actual is not None
    assert not actual.reasons
    assert not actual.to_python
    assert [step.parent for step in actual.steps] == [-1, 0, 1]
    assert [expected for step in actual.steps for _, expected in step.conditions] == [True, False]
    (output,) = actual.outputs
    assert (output.key, output.value) == (Conversion.AS_READ, Conversion.LONG)


def test_a_pair_of_expressions_sets_key_and_value_in_one_step() -> None:
    """Both expressions see the old key and value."""

    def add(stream: Any) -> None:
        filtered = stream.filter(col("value") > "a")
        filtered.map((col("value"), col("key").length())).to("out", key=_TEXT, value=Serdes.long())

    actual = _lowered(add)
    assert actual is not None
    assert not actual.reasons
    assert [str(each) for each in (actual.steps[1].key, actual.steps[1].value)] == [
        "col('value')",
        "length(col('key'))",
    ]
    (output,) = actual.outputs
    assert (output.key, output.value) == (Conversion.TEXT, Conversion.LONG)


def test_steps_after_a_function_run_in_python() -> None:
    """A filter before the function runs in the JVM; the remaining records go to Python."""

    def add(stream: Any) -> None:
        filtered = stream.filter(col("value") > "a")
        filtered.map_values(str.upper).filter(col("value") != "B").to("out", key=_TEXT, value=_TEXT)

    actual = _lowered(add)
    assert actual is not None
    assert len(actual.steps) == 1
    assert actual.to_python == {0}
    assert not actual.outputs
    assert list(actual.reasons.values()) == [
        "a function",
        *["it follows a step in Python"] * 2,
    ]


@pytest.mark.parametrize(
    ("add", "value"),
    [
        (lambda stream: stream.map_values(str.upper).to("out"), _TEXT),
        (lambda stream: stream.filter(col("value.a") > 1).to("out"), _ANY),
        (lambda stream: stream.filter(col("value.total") > 1).to("out"), _SALE),
        (lambda stream: stream.filter(col("value.tags").is_null()).to("out"), _SALE),
        (lambda stream: stream.filter(col("value") == 1).to("out"), _TEXT),
        (lambda stream: stream.filter(col("value")).to("out"), _TEXT),
        (
            lambda stream: stream.filter(col("value") > "a").group_by_key().count().to_stream(),
            _TEXT,
        ),
    ],
)
def test_nothing_is_lowered_without_a_benefit(add: Callable[[Any], Any], value: Any) -> None:
    """Examples are a leading function, untyped JSON, properties, and stateful queries."""
    assert _lowered(add, value) is None


def test_pyspark_columns_are_rejected_in_python_steps() -> None:
    """The error names the step and the reason why it runs in Python."""
    column = OfSpark(None, None, "nothing means it", "Column<'value'>")

    def add(stream: Any) -> None:
        windows = TimeWindows.of_size_with_no_grace("1 s")
        stream._then("odd", "FILTER", Filter(column))
        stream.group_by_key().windowed_by(windows).count()

    with pytest.raises(
        TopologyError, match=r"odd is the expression Column<'value'>.*means it.*stateful query"
    ):
        _lowered(add)


_TYPED = [
    (col("value.amount") + 1, Scalar.INT),
    (col("value.amount") / 2, Scalar.FLOAT),
    (col("value.amount") % col("value.price"), Scalar.FLOAT),
    (col("value.shop").length(), Scalar.INT),
    (col("value.shop") + None, Scalar.NOTHING),
    (when(col("value.amount") > 1, "a"), Scalar.TEXT),
    (col("value").is_null() | None, Scalar.FLAG),
]


@pytest.mark.parametrize(("expression", "kind"), _TYPED)
def test_types_of_expressions(expression: Column, kind: Scalar) -> None:
    """The types are the types of Python's results."""
    assert type_of(expression, Scalar.TEXT, type_read(_SALE)) is kind


@pytest.mark.parametrize(
    "expression",
    [
        col("value.shop") + 1,
        col("value.shop") < 1,
        when(col("value.amount"), 1, 2),
        when(lit(True), 1, 2.0),
        ~col("value.amount"),
        col("value.shop").substring(1, 1 << 40),
        col("key.x"),
        lit("\ud800"),
    ],
)
def test_expressions_without_a_type(expression: Column) -> None:
    """If the type depends on the values, the expression must run in Python."""
    with pytest.raises(RunsInPython):
        type_of(expression, Scalar.TEXT, type_read(_SALE))


def test_a_struct_has_the_types_of_its_fields() -> None:
    """It can be written as JSON."""
    structure = type_of(struct(a=col("key"), b=1), Scalar.TEXT, Scalar.TEXT)
    assert isinstance(structure, Structure)
    assert dict(structure.fields) == {"a": Scalar.TEXT, "b": Scalar.INT}


@dataclass
class _Counted:
    number: int
    inner: list[Sale]


@dataclass
class _Checked:
    number: int

    def __post_init__(self) -> None:
        self.number += 1


@dataclass
class _Apart:
    number: int
    other: int = field(init=False, default=1)


@pytest.mark.parametrize("kind", [_Counted, _Checked, _Apart, dict])
def test_classes_that_spark_cannot_read(kind: Any) -> None:
    """Their constructors compute or omit fields, or are untyped."""
    with pytest.raises(RunsInPython):
        type_read(Serdes.json(kind))


def _explained(topology: Topology) -> list[str]:
    return explain(topology).splitlines()


def test_an_explanation_marks_steps_in_the_jvm() -> None:
    """It also contains the reason for every expression in Python."""
    builder = StreamsBuilder()
    filtered = builder.stream("in", key=_TEXT, value=_SALE).filter(col("value.amount") > 1)
    filtered.map_values(struct(shop=col("value.shop"))).to("out", key=_TEXT, value=_ANY)
    filtered.filter(col("value.total") > 1).to("big", key=_TEXT, value=_SALE)
    lines = _explained(builder.build())
    assert lines[2:] == [
        "  KSTREAM-SOURCE-0000000000: Python, its records go to the JVM, reads topic in",
        "  KSTREAM-FILTER-0000000001: JVM, an expression: (col('value.amount') > 1)",
        "  KSTREAM-MAPVALUES-0000000002: JVM, an expression: struct(shop=col('value.shop'))",
        "  KSTREAM-SINK-0000000003: JVM, writes to topic out",
        "  KSTREAM-FILTER-0000000004: Python (col('value.total') is not a field that is read), an expression: "
        "(col('value.total') > 1)",
        "  KSTREAM-SINK-0000000005: Python (it follows a step in Python), writes to topic big",
    ]

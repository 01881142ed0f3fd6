"""Column expressions have the same results in Spark and in Python."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.streams.expressions.columns import Column, coalesce, col, compiled, lit, struct, when
from ottla.streams.spark.catalyst.column_types import RunsInPython, Scalar, Structure, type_of
from ottla.streams.spark.catalyst.columns import Value, emit

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

_SCHEMA = (
    "key string, value struct<i: bigint, j: bigint, x: double, y: double, s: string, t: string, "
    "b: boolean, c: boolean>"
)
_TEXTS = st.text("aZ ßé😀", max_size=4)
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e300, math.inf, -math.inf, math.nan])
_WHOLE = st.integers(-9, 9) | st.sampled_from([(1 << 62) + 1, -(1 << 63), (1 << 53) + 1])


def _rows() -> st.SearchStrategy[dict[str, Any]]:
    fields = {"i": _WHOLE, "j": _WHOLE, "x": _FLOATS, "y": _FLOATS, "s": _TEXTS, "t": _TEXTS}
    flags = {"b": st.booleans(), "c": st.booleans()}
    return st.fixed_dictionaries(
        {name: st.none() | each for name, each in (fields | flags).items()}
    )


def _fields(*names: str) -> st.SearchStrategy[Column]:
    return st.sampled_from([col(f"value.{name}") for name in names])


def _numbers(depth: int) -> st.SearchStrategy[Column]:
    leaves = _fields("i", "j", "x", "y") | st.builds(lit, st.integers(-9, 9) | _FLOATS)
    if depth == 0:
        return leaves
    inner = _numbers(depth - 1)
    two = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a % b,
    ]
    return st.one_of(
        leaves,
        st.builds(lambda make, a, b: make(a, b), st.sampled_from(two), inner, inner),
        st.builds(lambda a: -a, inner),
        st.builds(abs, inner),
        st.builds(lambda a: a.length(), _text(depth - 1)),
    )


def _text(depth: int) -> st.SearchStrategy[Column]:
    leaves = _fields("s", "t") | st.just(col("key")) | st.builds(lit, _TEXTS)
    if depth == 0:
        return leaves
    inner = _text(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda a, b: a.concat(b), inner, inner),
        st.builds(lambda a: a.upper(), inner),
        st.builds(lambda a: a.lower(), inner),
        st.builds(lambda a: a.trim(), inner),
        st.builds(lambda a, n, m: a.substring(n, m), inner, st.integers(-6, 6), st.integers(-1, 4)),
        st.builds(coalesce, inner, inner),
        st.builds(when, _flags(depth - 1), inner, inner),
    )


def _flags(depth: int) -> st.SearchStrategy[Column]:
    leaves = _fields("b", "c") | st.builds(lit, st.booleans())
    if depth == 0:
        return leaves
    two = [
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
    ]
    parts = [
        lambda a, b: a.starts_with(b),
        lambda a, b: a.ends_with(b),
        lambda a, b: a.contains(b),
    ]
    numbers, texts, flags = _numbers(depth - 1), _text(depth - 1), _flags(depth - 1)

    def build(makes: list[Any], operands: st.SearchStrategy[Column]) -> Any:
        return st.builds(lambda make, a, b: make(a, b), st.sampled_from(makes), operands, operands)

    return st.one_of(
        leaves,
        build(two, numbers),
        build(two, texts),
        build(parts, texts),
        build([lambda a, b: a & b, lambda a, b: a | b], flags),
        st.builds(lambda a: ~a, flags),
        st.builds(lambda a: a.is_null(), numbers | texts),
        st.builds(lambda a, b: a.is_in(b, "a", None), texts, texts),
    )


_ANY = st.one_of(_numbers(2), _text(2), _flags(2))


_KINDS = {"i": Scalar.INT, "j": Scalar.INT, "x": Scalar.FLOAT, "y": Scalar.FLOAT, "s": Scalar.TEXT}
_KINDS |= {"t": Scalar.TEXT, "b": Scalar.FLAG, "c": Scalar.FLAG}


def _sides() -> tuple[Value, Value]:
    """Return the types of key and value of _SCHEMA."""
    fields = {name: Value(kind, F.col(f"value.{name}")) for name, kind in _KINDS.items()}
    return Value(Scalar.TEXT, F.col("key")), Value(Structure(_KINDS), F.lit(True), fields)


def _emitted(expression: Column) -> tuple[SparkColumn, SparkColumn]:
    """Return the Spark expression, and whether its equality is doubtful."""
    doubts: list[SparkColumn] = []
    column = emit(expression, *_sides(), doubts).whole
    doubtful = F.lit(False)
    for doubt in doubts:
        doubtful = doubtful | F.coalesce(doubt, F.lit(False))
    return column, doubtful


def _has_type(expression: Column) -> bool:
    key, value = _sides()
    try:
        type_of(expression, key.kind, value.kind)
    except RunsInPython:
        return False
    return True


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    # The reader of the type distinguishes integers and floating-point numbers, not this test.
    return bool(ours == theirs) and (ours is None) == (theirs is None)


@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(_ANY, min_size=15, max_size=25), st.lists(_rows(), min_size=5, max_size=8))
def test_spark_and_python_yield_the_same_results(
    spark: SparkSession, expressions: list[Column], rows: list[dict[str, Any]]
) -> None:
    """Random expressions on None, NaN, infinities and all characters are equal, or are doubtful."""
    remaining = [source_text for source_text in expressions if _has_type(source_text)]
    assert len(remaining) > len(expressions) / 2
    frame = spark.createDataFrame(
        [("k", tuple(row[name] for name in "ijxystbc")) for row in rows], _SCHEMA
    )
    pairs = [column for each in remaining for column in _emitted(each)]
    named = [column.alias(f"c{number}") for number, column in enumerate(pairs)]
    for row, theirs in zip(rows, frame.select(*named).collect(), strict=True):
        for number, expression in enumerate(remaining):
            actual, is_doubtful = theirs[2 * number : 2 * number + 2]
            try:
                ours = compiled(expression)("k", row)
            except OverflowError:
                assert is_doubtful, f"{expression} of {row}"
                continue
            detail = f"{expression} of {row}: {ours} != {actual}"
            assert is_doubtful or _same(ours, actual), detail


def test_a_struct_has_its_fields(spark: SparkSession) -> None:
    """A dict in Python is a row in Spark."""
    expression = struct(name=col("key"), twice=col("value.i") * 2)
    frame = spark.createDataFrame([("k", (4, *[None] * 7))], _SCHEMA)
    (row,) = frame.select(_emitted(expression)[0].alias("made")).collect()
    assert row.made.asDict() == compiled(expression)("k", {"i": 4})

"""The data frame of a query whose steps run in the JVM: from the records read to the rows to be
written.

Every step adds columns: a condition for its records, and their new key and value. All doubts
(columns.py) are combined in one more column, `python`. A record for which it is true leaves the
frame as it was read, and the writing task processes it with the sub-topology in Python. Each record
is thus processed once, by the JVM or by Python, and keeps its position among the others.
"""

import functools
import math
import operator
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.streams.expressions.columns import Column, OfSpark
from ottla.streams.model.errors import TopologyError
from ottla.streams.serdes import Serde
from ottla.streams.serdes.serde import INTEGER
from ottla.streams.spark.catalyst.column_types import UNUSED, ColumnType, Scalar, Structure
from ottla.streams.spark.catalyst.columns import Value, emit
from ottla.streams.spark.catalyst.json_fields import parse_json, read_json
from ottla.streams.spark.catalyst.number_bytes import int_bytes, long_bytes, read_double, read_whole
from ottla.streams.spark.catalyst.row_source import PLAIN
from ottla.streams.spark.catalyst.steps import (
    SOURCE,
    Conversion,
    Expression,
    LoweredSource,
    Output,
    SparkType,
    Step,
    topic_numbers,
)

_DDL = {
    Scalar.INT: "bigint",
    Scalar.FLOAT: "double",
    Scalar.TEXT: "string",
    Scalar.FLAG: "boolean",
    Scalar.BYTES: "binary",
    Scalar.NOTHING: "void",
}
# Ottla's types for the result types of Spark's own expressions.
_SPARKS = {
    "tinyint": Scalar.INT,
    "smallint": Scalar.INT,
    "int": Scalar.INT,
    "bigint": Scalar.INT,
    "float": Scalar.FLOAT,
    "double": Scalar.FLOAT,
    "string": Scalar.TEXT,
    "boolean": Scalar.FLAG,
    "binary": Scalar.BYTES,
    "void": Scalar.NOTHING,
}
_RAW = {"_key": "key", "_value": "value"}


@dataclass(frozen=True)
class _State:
    """Key and value at a step, and the condition of the records that reach it."""

    key: Value
    value: Value
    keep: SparkColumn


def spark_types(spark: SparkSession) -> SparkType:
    """Return a function that asks Spark for the types of its own expressions."""

    def ask(expression: OfSpark, key: ColumnType, value: ColumnType) -> ColumnType:
        empty = spark.createDataFrame([], f"key {_ddl(key)}, value {_ddl(value)}")
        try:
            result = empty.select(expression.column).schema[0].dataType.simpleString()
        except AnalysisException as error:
            raise TopologyError(
                f"{expression} is not a valid expression of key and value: {error}"
            ) from None
        if result not in _SPARKS:
            accepted = "bigint, double, string, boolean or binary"
            raise TopologyError(f"{expression} is {result}: cast it to {accepted}")
        return _SPARKS[result]

    return ask


def active_spark_types() -> SparkType:
    """Return such a function for the session in which the user created the expressions of pyspark."""
    return spark_types(SparkSession.builder.getOrCreate())


def _ddl(kind: ColumnType) -> str:
    if not isinstance(kind, Structure):
        return _DDL[kind]
    used_fields = {name: field for name, field in kind.fields.items() if field not in UNUSED}
    fields = (f"`{name}`: {_ddl(field)}" for name, field in used_fields.items())
    return f"struct<{', '.join(fields)}>"


def columns_frame(records: DataFrame, lowered: Sequence[LoweredSource]) -> DataFrame:
    """Return the rows to be written for the records (row_source.py documents the columns of both)."""
    builder = _Builder(records.withColumnsRenamed({new: old for old, new in _RAW.items()}))
    numbers = topic_numbers(lowered)
    for number, steps in enumerate(lowered):
        builder.add(number, steps, numbers if len(lowered) > 1 else None)
    return builder.finish()


def _any(columns: Iterable[SparkColumn]) -> SparkColumn:
    return functools.reduce(operator.or_, columns, F.lit(False))


def _sure(column: SparkColumn) -> SparkColumn:
    """Return a condition in which null counts as false."""
    return F.coalesce(column.cast("boolean"), F.lit(False))


class _Builder:
    """Adds the columns of all sources."""

    def __init__(self, records: DataFrame) -> None:
        self._frame = records
        self._python: list[SparkColumn] = []
        self._outputs: list[tuple[_State, Output]] = []
        self._prefix = ""
        # Random, so that no record contains it: it follows a record's JSON to prove that the parser
        # read all of the text as one value.
        self._end = uuid.uuid4().hex

    def _named(self, name: str, column: SparkColumn) -> SparkColumn:
        """Add a column to the frame; return it."""
        self._frame = self._frame.withColumn(self._prefix + name, column)
        return F.col(self._prefix + name)

    def add(self, number: int, lowered: LoweredSource, numbers: Mapping[str, int] | None) -> None:
        """Add the steps below a source; `numbers` are the numbers of all topics, and None if it is
        the only source.
        """
        self._prefix = f"_{number}_"
        is_from_source = F.lit(True)
        if numbers is not None:
            own = [numbers[topic] for topic in lowered.topics]
            is_from_source = F.col("topic_number").isin(own)
        if lowered.types is None:
            self._python.append(is_from_source)
            return
        doubts = [F.col("timestamp") < F.timestamp_millis(F.lit(0))]
        sides = [
            self._read(name, kind, serde, doubts)
            for name, kind, serde in zip(_RAW, lowered.types, lowered.serdes, strict=True)
        ]
        states = {SOURCE: _State(sides[0], sides[1], is_from_source)}
        self._doubt("read", is_from_source, doubts)
        for index, step in enumerate(lowered.steps):
            states[index] = self._step(str(index), step, states[step.parent])
        self._python += [states[index].keep for index in sorted(lowered.to_python)]
        self._outputs += [(states[output.step], output) for output in lowered.outputs]

    def _doubt(self, name: str, keep: SparkColumn, doubts: list[SparkColumn]) -> None:
        if doubts:
            self._python.append(self._named(f"{name}_doubt", keep & _any(map(_sure, doubts))))

    def _read(
        self, name: str, kind: ColumnType, serde: Serde[object], doubts: list[SparkColumn]
    ) -> Value:
        raw = F.col(name)
        plain = F.col("plain").bitwiseAND(F.lit(PLAIN[_RAW[name]])) != 0
        text = Value(Scalar.TEXT, raw.cast("string"), plain=plain)
        if isinstance(kind, Structure):
            return self._read_json(name, text, kind, doubts)
        if kind is Scalar.TEXT:
            doubts.append(~plain & ~F.is_valid_utf8(text.column))
            return text
        if kind is Scalar.BYTES:
            return Value(kind, raw)
        doubts.append(F.length(raw) != (4 if serde is INTEGER else 8))
        if kind is Scalar.FLOAT:
            bits = self._named(name + "_bits", read_whole(raw, 8))
            return Value(kind, self._named(name + "_read", read_double(bits, doubts)))
        number = read_whole(raw, 4 if serde is INTEGER else 8)
        return Value(kind, self._named(name + "_read", number))

    def _read_json(
        self, name: str, text: Value, kind: Structure, doubts: list[SparkColumn]
    ) -> Value:
        parsed = self._named(name + "_json", parse_json(text.column, self._end))
        added: dict[str, SparkColumn] = {}

        def named(field: str, column: SparkColumn) -> SparkColumn:
            added[self._prefix + name + field] = column
            return F.col(self._prefix + name + field)

        result = read_json((text, parsed), kind, self._end, doubts, named)
        self._frame = self._frame.withColumns(added)
        return result

    def _step(self, name: str, step: Step, state: _State) -> _State:
        doubts: list[SparkColumn] = []
        keep = state.keep
        for number, (test, expected) in enumerate(step.conditions):
            result = self._value(f"{name}_if{number}", test, state, doubts)
            holds = _sure(result.column)
            keep = keep & (holds if expected else ~holds)
        self._doubt(name, state.keep, doubts)
        if step.conditions:
            keep = self._named(name + "_keep", keep)
        after = _State(state.key, state.value, keep)
        doubts = []
        key, value = state.key, state.value
        if step.key is not None:
            key = self._kept(name + "_key", self._value(name + "_k", step.key, after, doubts))
        if step.value is not None:
            value = self._kept(name + "_value", self._value(name + "_v", step.value, after, doubts))
        self._doubt(name + "_map", keep, doubts)
        return _State(key, value, keep)

    def _kept(self, name: str, value: Value) -> Value:
        """Return a value with the frame's columns, so that expressions do not grow."""
        if isinstance(value.kind, Structure):
            fields = {
                field_name: self._kept(f"{name}-{field_name}", field_value)
                for field_name, field_value in value.fields.items()
            }
            return Value(value.kind, value.column, fields)
        return Value(value.kind, self._named(name, value.column), plain=value.plain)

    def _value(
        self, name: str, expression: Expression, state: _State, doubts: list[SparkColumn]
    ) -> Value:
        if isinstance(expression, Column):
            return emit(expression, state.key, state.value, doubts)
        # A user's expression of pyspark may fail: evaluate it only for the records that reach this
        # step.
        for side, side_value in (("key", state.key), ("value", state.value)):
            self._frame = self._frame.withColumn(side, side_value.whole)
        reached = state.keep & ~_any(self._python)
        result = self._named(name, F.when(reached, expression.column))
        self._frame = self._frame.drop("key", "value")
        kind = _SPARKS[self._frame.select(result).schema[0].dataType.simpleString()]
        return Value(kind, result if kind is Scalar.NOTHING else result.cast(_DDL[kind]))

    def finish(self) -> DataFrame:
        """Return the rows of all records that are to be written or left to Python."""
        rows = []
        names: dict[str, str] = {}
        for number, (state, output) in enumerate(self._outputs):
            self._prefix = f"_out{number}_"
            doubts: list[SparkColumn] = []
            row = _written(number, state, output, doubts)
            self._doubt("write", state.keep, doubts)
            rows.append((state.keep, row))
        self._prefix = "_"
        is_python = self._named("python", _any(self._python))
        frame = self._frame.where(_any([is_python, *(keep for keep, _ in rows)]))
        frame = frame.select("*", (F.lit(-1) - F.col("topic_number")).alias("_rest"))
        python_columns = {"target": F.col("_rest"), "key": F.col("_key"), "value": F.col("_value")}
        position = [
            F.when(is_python, F.col(column_name)).alias(column_name)
            for column_name in ("partition", "offset")
        ]
        if len(rows) == 1:
            ready = rows[0][1]
            only = [
                F.when(is_python, python_columns[name]).otherwise(column)
                if name in python_columns
                else column
                for name, column in ready.items()
            ]
            named = [column.alias(name) for name, column in zip(ready, only, strict=True)]
            return frame.select("timestamp", "headers", *position, *named)
        kinds = frame.select(
            *[e.alias(n) for _, row in rows for n, e in row.items() if n not in python_columns]
        ).schema
        names = {"target": "int", "key": "binary", "value": "binary"}
        names |= {kind.name: kind.dataType.simpleString() for kind in kinds}
        targets = [(is_python, python_columns), *((keep & ~is_python, row) for keep, row in rows)]
        entries = [F.when(keep, _row(row, names)) for keep, row in targets]
        together = F.inline(F.array_compact(F.array(*entries)))
        return frame.select("timestamp", "headers", *position, together)


def _row(row: dict[str, SparkColumn], names: dict[str, str]) -> SparkColumn:
    """Return a row as a struct with all columns."""
    empty = F.lit(None)
    return F.struct(*[row.get(name, empty).cast(kind).alias(name) for name, kind in names.items()])


def _written(
    number: int, state: _State, output: Output, doubts: list[SparkColumn]
) -> dict[str, SparkColumn]:
    """Return the columns of a sink's row: bytes, or values for its serde."""
    row = {"target": F.lit(number)}
    for name, serialization, value in (
        ("key", output.key, state.key),
        ("value", output.value, state.value),
    ):
        nothing = F.lit(None).cast("binary")
        if serialization is Conversion.SERDE:
            if value.kind is Scalar.FLOAT:
                # There are many NaN values, and the JVM has only one. JSON has neither NaN nor
                # infinities: the application's handlers get a record that contains one.
                doubts.append(F.isnan(value.column) | (F.abs(value.column) == math.inf))
            row |= {name: nothing, f"{name}{number}": value.whole}
        elif value.kind is Scalar.NOTHING:
            row[name] = nothing
        elif serialization is Conversion.AS_READ:
            row[name] = F.col("_" + name)
        elif serialization is Conversion.TEXT:
            row[name] = value.column.cast("binary")
        elif serialization is Conversion.LONG:
            row[name] = long_bytes(value.column)
        else:
            row[name] = int_bytes(value.column, doubts)
    return row

"""Converts Column expressions to Spark's, with the results of `ottla.streams.expressions.columns`.

Python and the JVM may differ for some records (integers beyond 64 bits, case conversion of
non-ASCII letters). For these, a converted expression adds *doubts*: columns that are true for such
records, which Python then evaluates. If no doubt is true, both give the same result, and Spark
raises no error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from ottla.streams.expressions.columns import Column
from ottla.streams.spark.catalyst.column_types import UNUSED, ColumnType, Scalar, Structure, type_of


@dataclass(frozen=True)
class Value:
    """A value in the JVM: a column; or a structure of fields, whose `column` is true if it is not
    None.
    """

    kind: ColumnType
    column: SparkColumn
    fields: Mapping[str, "Value"] = field(default_factory=dict)
    plain: SparkColumn | None = None
    """The condition under which a text is certainly ASCII, if it is known without a check."""

    @property
    def whole(self) -> SparkColumn:
        """The value as one column."""
        if not isinstance(self.kind, Structure):
            return self.column
        used_fields = {
            name: field for name, field in self.fields.items() if field.kind not in UNUSED
        }
        struct = F.struct(*[field.whole.alias(name) for name, field in used_fields.items()])
        return struct if self.kind.made else F.when(self.column, struct)


_PLAIN: dict[str, Callable[..., SparkColumn]] = {
    # Spark's own division fails at zero.
    "/": lambda left, right: F.try_divide(left.cast("double"), right.cast("double")),
    "%": F.try_mod,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "&": lambda left, right: left.cast("boolean") & right.cast("boolean"),
    "|": lambda left, right: left.cast("boolean") | right.cast("boolean"),
    "not": lambda value: ~value,
    "coalesce": F.coalesce,
    "when": lambda condition, value, other: F.when(condition.cast("boolean"), value).otherwise(
        other
    ),
    "concat": F.concat,
    "length": lambda text: F.length(text).cast("bigint"),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "contains": F.contains,
    "trim": F.trim,
    "substring": lambda text, start, length: F.substring(
        text, start.cast("int"), length.cast("int")
    ),
}
_OF_FLOATS: dict[str, Callable[..., SparkColumn]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "negate": lambda value: -value,
    "abs": F.abs,
}
_OF_INTS: dict[str, Callable[..., SparkColumn]] = {
    "+": F.try_add,
    "-": F.try_subtract,
    "*": F.try_multiply,
    "negate": lambda value: F.try_subtract(_whole_number(0), value),
    "abs": lambda value: F.when(value < 0, F.try_subtract(_whole_number(0), value)).otherwise(
        value
    ),
}
_CASES: dict[str, Callable[..., SparkColumn]] = {"upper": F.upper, "lower": F.lower}


def emit(expression: Column, key: Value, value: Value, doubts: list[SparkColumn]) -> Value:
    """Convert an expression over a key and a value; add its doubts to `doubts`."""
    operands = expression.operands
    kind = type_of(expression, key.kind, value.kind)
    match expression.operation:
        case "literal":
            literal = operands[0]
            is_plain = isinstance(literal, str) and literal.isascii()
            return Value(kind, _literal(literal), plain=F.lit(True) if is_plain else None)
        case "field":
            return _field(operands, key if operands[0] == "key" else value)
        case "struct":
            pairs = zip(operands[::2], operands[1::2], strict=True)
            fields = {name: emit(operand, key, value, doubts) for name, operand in pairs}
            return Value(kind, F.lit(True), fields)
    inner = [emit(operand, key, value, doubts) for operand in operands]
    if kind is Scalar.NOTHING:
        return Value(kind, F.lit(None))
    if expression.operation == "is_null":
        return Value(kind, _is_null(inner[0]))
    result = _applied(expression.operation, kind, inner, doubts)
    return Value(kind, result, plain=_plain(inner) if kind is Scalar.TEXT else None)


def _plain(inner: list[Value]) -> SparkColumn | None:
    """Return the condition under which a text is certainly ASCII: all texts it is made of are."""
    result = None
    for value in inner:
        if value.kind is Scalar.TEXT:
            if value.plain is None:
                return None
            result = value.plain if result is None else result & value.plain
    return result


def _field(path: tuple[str, ...], current: Value) -> Value:
    for name in path[1:]:
        current = current if current.kind is Scalar.NOTHING else current.fields[name]
    return current


def _is_null(value: Value) -> SparkColumn:
    if isinstance(value.kind, Structure):
        return ~value.column
    return value.column.isNull()


def _applied(
    operation: str, kind: ColumnType, inner: list[Value], doubts: list[SparkColumn]
) -> SparkColumn:
    columns = [value.column for value in inner]
    if len({value.kind for value in inner if value.kind in (Scalar.INT, Scalar.FLOAT)}) > 1:
        # If one operand is a floating-point number, convert both.
        columns = [column.cast("double") for column in columns]
    if operation in _PLAIN:
        return _PLAIN[operation](*columns)
    if operation in _CASES:
        # Python and Java have different case tables, and different rules that depend on
        # neighbouring letters.
        odd = F.octet_length(columns[0]) != F.length(columns[0])
        doubts.append(odd if inner[0].plain is None else ~inner[0].plain & odd)
        return _CASES[operation](columns[0])
    if kind is Scalar.FLOAT:
        return _OF_FLOATS[operation](*columns)
    result = _OF_INTS[operation](*columns)
    overflown = result.isNull()
    for operand in columns:
        overflown &= operand.isNotNull()
    doubts.append(overflown)
    return result


def _whole_number(value: int) -> SparkColumn:
    return F.lit(value).cast("bigint")


def _literal(value: Any) -> SparkColumn:
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole_number(value)
    return F.lit(value)

"""Column expressions as Spark's: they give what `ottla.streams.columns` gives record by record."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from ottla.streams.columns import Column

_FUNCTIONS: dict[str, Callable[..., SparkColumn]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    # Spark's own division fails at zero.
    "/": lambda left, right: F.try_divide(left.cast("double"), right.cast("double")),
    "%": F.try_mod,
    "negate": lambda value: -value,
    "abs": F.abs,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "not": lambda value: ~value,
    "is_null": lambda value: value.isNull(),
    "coalesce": F.coalesce,
    "when": lambda condition, value, other: F.when(condition, value).otherwise(other),
    "concat": F.concat,
    "length": lambda text: F.length(text).cast("bigint"),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "contains": F.contains,
    "trim": F.trim,
    "upper": F.upper,
    "lower": F.lower,
    "substring": lambda text, start, length: F.substring(
        text, start.cast("int"), length.cast("int")
    ),
}


def to_spark(expression: Column) -> SparkColumn:
    """Return an expression over the columns `key` and `value`; whole numbers in them are bigint, others double."""
    operands = expression.operands
    match expression.operation:
        case "literal":
            return _literal(operands[0])
        case "field":
            first = F.col(operands[0])
            for name in operands[1:]:
                first = first.getField(name)
            return first
        case "struct":
            pairs = zip(operands[::2], operands[1::2], strict=True)
            return F.struct(*[to_spark(each).alias(name) for name, each in pairs])
    return _FUNCTIONS[expression.operation](*map(to_spark, operands))


def _literal(value: Any) -> SparkColumn:
    found = F.lit(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return found.cast("bigint")
    return found

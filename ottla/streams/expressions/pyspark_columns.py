"""Converts expressions of pyspark to equivalent ones of Ottla, which need no JVM.

A `pyspark.sql.Column` is a tree in the JVM of its program. Spark's converter turns it into a
Catalyst expression and parses the SQL in it. The expression is read here through py4j; pyspark is
not imported.
"""

import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ottla.streams.expressions.columns import Column, OfSpark
from ottla.streams.expressions.spark_functions import (
    ALIASES,
    BRANCHES,
    DOUBLES,
    LAZY,
    LOOSE,
    STRICT,
)
from ottla.streams.expressions.spark_values import cast_to

_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$"
# Classes of Catalyst, by the names of their functions.
_CLASSES = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "IntegralDivide": "div",
    "Remainder": "%",
    "UnaryMinus": "negative",
    "UnaryPositive": "positive",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "IsNull": "isnull",
    "IsNotNull": "isnotnull",
    "In": "in",
    "Like": "like",
    "ILike": "ilike",
    "RLike": "rlike",
    "Concat": "concat",
    "Substring": "substring",
    "StringTrim": "btrim",
    "StringLocate": "locate",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "BitwiseNot": "~",
    "UnresolvedExtractValue": "extract",
}
_PLAIN = frozenset(("void", "boolean", "tinyint", "smallint", "int", "bigint", "double", "binary"))


class _UnknownError(Exception):
    """The part of an expression that cannot be converted."""


def of_pyspark(column: Any) -> OfSpark:
    """Convert a Column of pyspark to a function of key and value, which operators call."""
    if not hasattr(column, "_jc"):
        return OfSpark(column, None, "it is of Spark Connect")
    try:
        return OfSpark(column, _translated(_catalyst(column._jc)))
    except _UnknownError as error:
        return OfSpark(column, None, str(error))


def _catalyst(column: Any) -> Any:
    loader = column.getClass().getClassLoader()
    converter = loader.loadClass(_CONVERTER).getField("MODULE$").get(None)
    return converter.apply(column.node())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _translated(expression: Any) -> Column:
    name = expression.nodeName()
    if name == "Literal":
        return _literal(expression)
    if name == "UnresolvedAttribute":
        return _field(list(_items(expression.nameParts())))
    children = list(_items(expression.children()))
    if name == "Alias":
        return _translated(children[0])
    if name == "CaseWhen":
        return _case([_translated(child) for child in children])
    if name == "Cast":
        return _cast(expression, _translated(children[0]))
    if name == "UnresolvedFunction":
        return _called(expression, children)
    if name == "CreateNamedStruct":
        # SQL's struct(): the names must still be determined.
        return _struct_of(children[1::2])
    if name not in _CLASSES:
        raise _UnknownError(f"Ottla does not translate {expression.sql()}")
    values = [_translated(child) for child in children]
    if name in ("Like", "ILike"):
        values.append(Column("literal", (str(expression.escapeChar()),)))
    return _function(_CLASSES[name], values)


def _literal(expression: Any) -> Column:
    kind, value = expression.dataType().simpleString(), expression.value()
    if kind == "string":
        value = None if value is None else value.toString()
    elif kind.startswith("decimal"):
        value = None if value is None else Decimal(value.toString())
    elif kind not in _PLAIN:
        raise _UnknownError(f"{expression.sql()} is a {kind}")
    return Column("literal", (bytes(value) if kind == "binary" else value,))


def _field(names: list[str]) -> Column:
    root, *path = names
    if root.lower() not in ("key", "value"):
        raise _UnknownError(f"{'.'.join(names)} is not a field of key or value")
    result = Column("field", (root.lower(),))
    for name in path:
        result = Column("spark", ("extract", result, Column("literal", (name,))))
    return result


def _case(parts: list[Column]) -> Column:
    """Convert CASE WHEN: pairs of a condition and a value, and optionally the value of ELSE."""
    has_else = len(parts) % 2 == 1
    result = parts[-1] if has_else else Column("literal", (None,))
    conditions, values = parts[: len(parts) - has_else : 2], parts[1 : len(parts) : 2]
    alike = _alike([*values, result])
    result = alike[-1]
    for condition, value in zip(reversed(conditions), reversed(alike[:-1]), strict=True):
        result = Column("when", (_true(condition), value, result))
    return result


def _true(condition: Column) -> Column:
    """Convert a condition; evaluating it raises an error if it is neither true nor false."""
    return Column("spark", ("and", condition, Column("literal", (True,))))


def _cast(expression: Any, value: Column) -> Column:
    kind = expression.dataType().simpleString()
    mode = expression.evalMode().toString()
    if cast_to(kind) is None or mode not in ("ANSI", "TRY"):
        raise _UnknownError(f"Ottla does not translate {expression.sql()}")
    return Column("spark", (f"{'try_' if mode == 'TRY' else ''}cast {kind}", value))


def _called(expression: Any, children: list[Any]) -> Column:
    written = ".".join(_items(expression.nameParts()))
    name = written.lower()
    if expression.isDistinct():
        raise _UnknownError(f"{written} is an aggregate")
    if name == "struct":
        return _struct_of(children)
    values = [_translated(child) for child in children]
    if name == "named_struct":
        names = [value.operands[0] for value in values[::2] if value.operation == "literal"]
        if 2 * len(names) != len(values):
            raise _UnknownError("the field names of named_struct are not literals")
        return _struct(list(zip(names, values[1::2], strict=True)))
    if name == "between" and len(values) == 3:
        low = _function(">=", [values[0], values[1]])
        return _function("and", [low, _function("<=", [values[0], values[2]])])
    if name == "if" and len(values) == 3:
        return _case(values)
    if name == "nvl2" and len(values) == 3:
        return _case([_function("isnotnull", values[:1]), *values[1:]])
    return _function(ALIASES.get(name, name), values)


def _struct_of(children: list[Any]) -> Column:
    return _struct([(_name(child, n), _translated(child)) for n, child in enumerate(children, 1)])


def _struct(fields: list[tuple[str, Column]]) -> Column:
    return Column("struct", tuple(part for field in fields for part in field))


def _name(expression: Any, number: int) -> str:
    """Return the name that Spark gives to a field of a struct."""
    kind = expression.nodeName()
    if kind == "Alias":
        return str(expression.name())
    if kind == "UnresolvedAttribute":
        return str(list(_items(expression.nameParts()))[-1])
    return f"col{number}"


def _function(name: str, values: list[Column]) -> Column:
    function = STRICT.get(name) or LOOSE.get(name)
    if name not in LAZY and (function is None or not _takes(function, len(values))):
        raise _UnknownError(f"Ottla does not translate {name} with {len(values)} operands")
    return Column("spark", (name, *(_alike(values) if name in BRANCHES else values)))


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _alike(values: list[Column]) -> list[Column]:
    """Convert branches to one type: if one certainly is floating-point, whole numbers are
    converted.
    """
    if not any(map(_is_double, values)):
        return values
    return [Column("spark", ("cast double", value)) for value in values]


def _is_double(expression: Column) -> bool:
    if expression.operation == "literal":
        return isinstance(expression.operands[0], float | Decimal)
    name = expression.operands[0] if expression.operation == "spark" else None
    if name in ("+", "-", "*", "%", "negative", "abs"):
        return any(map(_is_double, expression.operands[1:]))
    return name in DOUBLES or name in ("cast double", "try_cast double")

"""Column expressions: `col("value.amount") * 2 > 10` in place of a function of key and value.

An expression is a tree of plain values, which an engine can analyze. Here it is evaluated record by
record; `spark/catalyst/columns.py` translates it to Spark, with the same results. As in SQL, an
operation with a missing value (None) returns None, and a predicate that is None is not satisfied.

Whole numbers have 64 bits (otherwise OverflowError); if one operand is a floating-point number,
both are converted. `/` always returns a floating-point number; `/` and `%` return None for a
division by zero. NaN equals itself and is the greatest number.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.streams.expressions import spark_functions
from ottla.streams.expressions.column_operations import (
    arithmetic,
    comparison,
    divided,
    each_character,
    fitting,
    remainder,
    substring,
)
from ottla.streams.expressions.spark_functions import Evaluate
from ottla.streams.model.errors import TopologyError

_STRICT: dict[str, Callable[..., Any]] = {
    "+": arithmetic(operator.add),
    "-": arithmetic(operator.sub),
    "*": arithmetic(operator.mul),
    "/": arithmetic(divided),
    "%": arithmetic(remainder),
    "negate": lambda value: fitting(-value),
    "abs": lambda value: fitting(abs(value)),
    "==": comparison(operator.eq),
    "!=": comparison(operator.ne),
    "<": comparison(operator.lt),
    "<=": comparison(operator.le),
    ">": comparison(operator.gt),
    ">=": comparison(operator.ge),
    "not": operator.not_,
    "concat": operator.add,
    "length": len,
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
    "contains": operator.contains,
    "trim": lambda text: text.strip(" "),
    "upper": lambda text: each_character(str.upper, text),
    "lower": lambda text: each_character(str.lower, text),
    "substring": substring,
}
"""Operations that return None if an operand is None."""


def _and(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Any, right: Any) -> Any:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


_LOOSE: dict[str, Callable[..., Any]] = {
    "&": _and,
    "|": _or,
    "is_null": lambda value: value is None,
    "coalesce": _first,
}
"""Operations that handle None."""


@dataclass(frozen=True, eq=False)
class Column:
    """An expression: an operation and its operands. Create one with `col`, `lit` and operators.

    `&`, `|` and `~` are the logical and, or and not.
    """

    operation: str
    operands: tuple[Any, ...] = ()
    """Columns; for a literal its value, of a field its path, of a struct names and Columns, of
    Spark's functions (`spark`) the name first.
    """

    def __bool__(self) -> bool:
        raise TypeError("a Column is true of some records: use &, | and ~, not and, or and not")

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> "Column":
        return _of("+", self, other)

    def __radd__(self, other: Any) -> "Column":
        return _of("+", other, self)

    def __sub__(self, other: Any) -> "Column":
        return _of("-", self, other)

    def __rsub__(self, other: Any) -> "Column":
        return _of("-", other, self)

    def __mul__(self, other: Any) -> "Column":
        return _of("*", self, other)

    def __rmul__(self, other: Any) -> "Column":
        return _of("*", other, self)

    def __truediv__(self, other: Any) -> "Column":
        return _of("/", self, other)

    def __rtruediv__(self, other: Any) -> "Column":
        return _of("/", other, self)

    def __mod__(self, other: Any) -> "Column":
        return _of("%", self, other)

    def __rmod__(self, other: Any) -> "Column":
        return _of("%", other, self)

    def __neg__(self) -> "Column":
        return _of("negate", self)

    def __abs__(self) -> "Column":
        return _of("abs", self)

    def __eq__(self, other: Any) -> "Column":  # type: ignore[override]
        return _of("==", self, other)

    def __ne__(self, other: Any) -> "Column":  # type: ignore[override]
        return _of("!=", self, other)

    def __lt__(self, other: Any) -> "Column":
        return _of("<", self, other)

    def __le__(self, other: Any) -> "Column":
        return _of("<=", self, other)

    def __gt__(self, other: Any) -> "Column":
        return _of(">", self, other)

    def __ge__(self, other: Any) -> "Column":
        return _of(">=", self, other)

    def __and__(self, other: Any) -> "Column":
        return _of("&", self, other)

    def __or__(self, other: Any) -> "Column":
        return _of("|", self, other)

    def __invert__(self) -> "Column":
        return _of("not", self)

    def is_null(self) -> "Column":
        """Return True if the value is missing."""
        return _of("is_null", self)

    def is_not_null(self) -> "Column":
        """Return True if the value is not missing."""
        return ~self.is_null()

    def is_in(self, *values: Any) -> "Column":
        """Return True if the value equals one of the arguments."""
        result = lit(False)
        for value in values:
            result = result | (self == value)
        return result

    def concat(self, other: Any) -> "Column":
        """Append a string."""
        return _of("concat", self, other)

    def length(self) -> "Column":
        """Return the number of characters."""
        return _of("length", self)

    def upper(self) -> "Column":
        """Convert to upper case."""
        return _of("upper", self)

    def lower(self) -> "Column":
        """Convert to lower case."""
        return _of("lower", self)

    def trim(self) -> "Column":
        """Remove leading and trailing spaces."""
        return _of("trim", self)

    def starts_with(self, part: Any) -> "Column":
        """Return True if the string starts with another."""
        return _of("starts_with", self, part)

    def ends_with(self, part: Any) -> "Column":
        """Return True if the string ends with another."""
        return _of("ends_with", self, part)

    def contains(self, part: Any) -> "Column":
        """Return True if the string contains another."""
        return _of("contains", self, part)

    def substring(self, start: int, length: int) -> "Column":
        """Return a substring. The first character is 1; a negative start counts from the end."""
        return _of("substring", self, start, length)

    def __str__(self) -> str:
        operands = [str(operand) for operand in self.operands]
        match self.operation:
            case "field":
                return f"col({'.'.join(self.operands)!r})"
            case "literal":
                return repr(self.operands[0])
            case "struct":
                pairs = zip(self.operands[::2], self.operands[1::2], strict=True)
                return f"struct({', '.join(f'{name}={operand}' for name, operand in pairs)})"
        if self.operation == "spark":
            return f"{operands[0]}({', '.join(operands[1:])})"
        if not self.operation.isidentifier() and len(operands) == 2:
            return f"({operands[0]} {self.operation} {operands[1]})"
        return f"{self.operation}({', '.join(operands)})"


def _of(operation: str, *operands: Any) -> Column:
    return Column(operation, tuple(map(column, operands)))


def column(value: Any) -> Column:
    """Return an expression unchanged, or a value as a literal."""
    return value if isinstance(value, Column) else lit(value)


def lit(value: str | int | float | bool | None) -> Column:
    """Return the expression of a constant."""
    if value is not None and not isinstance(value, str | int | float | bool):
        raise TypeError(f"a literal is text, a number, True, False or None, not {value!r}")
    return Column("literal", (fitting(value),))


def col(path: str) -> Column:
    """Return the expression of the record's `key` or `value`, or of a field: `value.address.city`."""
    parts = tuple(path.split("."))
    if parts[0] not in ("key", "value") or not all(parts):
        raise ValueError(f"a column begins with key or value, such as value.amount; not {path!r}")
    return Column("field", parts)


def coalesce(*values: Any) -> Column:
    """Return the first value that is not missing."""
    return _of("coalesce", *values)


def when(condition: Column, value: Any, otherwise: Any = None) -> Column:
    """Return `value` if the condition is true, else `otherwise`."""
    return _of("when", condition, value, otherwise)


def struct(**fields: Any) -> Column:
    """Return a value with named fields; in Python it is a dict."""
    return Column(
        "struct", tuple(x for name, field in fields.items() for x in (name, column(field)))
    )


def compiled(expression: Column) -> Evaluate:
    """Return a function that evaluates an expression."""
    operands = expression.operands
    match expression.operation:
        case "literal":
            constant = operands[0]
            return lambda _key, _value: constant
        case "field":
            return _field(operands)
        case "struct":
            parts = {
                name: compiled(operand)
                for name, operand in zip(operands[::2], operands[1::2], strict=True)
            }
            return lambda key, value: {name: part(key, value) for name, part in parts.items()}
        case "when":
            condition, chosen, other = map(compiled, operands)
            return lambda key, value: (
                chosen(key, value) if condition(key, value) else other(key, value)
            )
        case "spark":
            name, *values = operands
            inner = [compiled(value) for value in values]
            if name in spark_functions.LAZY:
                return spark_functions.LAZY[name](inner)
            if name in spark_functions.LOOSE:
                return _applied(spark_functions.LOOSE[name], inner)
            return _strict(spark_functions.strict(name), inner)
    inner = [compiled(operand) for operand in operands]
    if expression.operation in _LOOSE:
        return _applied(_LOOSE[expression.operation], inner)
    return _strict(_STRICT[expression.operation], inner)


def _applied(function: Callable[..., Any], inner: list[Evaluate]) -> Evaluate:
    return lambda key, value: function(*[evaluate(key, value) for evaluate in inner])


def _strict(function: Callable[..., Any], inner: list[Evaluate]) -> Evaluate:
    if len(inner) == 2:
        first, second = inner

        def evaluate_two(key: Any, value: Any) -> Any:
            left, right = first(key, value), second(key, value)
            return None if left is None or right is None else function(left, right)

        return evaluate_two

    def evaluate(key: Any, value: Any) -> Any:
        results = [operand(key, value) for operand in inner]
        return None if any(result is None for result in results) else function(*results)

    return evaluate


def _key(key: Any, _: Any) -> Any:
    return key


def _value(_: Any, value: Any) -> Any:
    return value


def _field(path: tuple[str, ...]) -> Evaluate:
    is_key, names = path[0] == "key", path[1:]
    if not names:
        return _key if is_key else _value

    def evaluate(key: Any, value: Any) -> Any:
        result = key if is_key else value
        for name in names:
            if result is None:
                return None
            result = (
                result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
            )
        return result

    return evaluate


class PysparkColumn(Protocol):
    """The type of a `pyspark.sql.Column` for type checkers if pyspark is not installed."""

    def isNotNull(self) -> Any:
        """Return True if the value is not missing."""

    def getField(self, name: Any) -> Any:
        """Return a field."""


class OfSpark:
    """A `pyspark.sql.Column` in place of a function: Spark evaluates it over the columns `key` and
    `value`.

    In steps that run in Python, and in the test driver, `meaning` is evaluated: an equivalent
    expression of Ottla. If no function exists, calling it raises an error with the reason.
    """

    def __init__(
        self, column: Any, meaning: Column | None, why: str = "", text: str | None = None
    ) -> None:
        self.column = column
        self.meaning = meaning
        self.why = why
        self._text = text
        self._evaluate = self._fail if meaning is None else compiled(meaning)

    def __call__(self, key: Any, value: Any) -> Any:
        """Return the value for a record. Raises TopologyError if only the JVM can evaluate the
        expression.
        """
        return self._evaluate(key, value)

    def _fail(self, _key: Any, _value: Any) -> Any:
        raise TopologyError(
            f"{self} is a Column of pyspark that only Spark's JVM can evaluate ({self.why}): write it with col() of "
            "ottla.streams or as a function, and it runs here as well"
        )

    def __str__(self) -> str:
        return str(self.column) if self._text is None else self._text

    def __reduce__(self) -> tuple[type["OfSpark"], tuple[None, Column | None, str, str]]:
        # Objects of pyspark cannot leave the driver.
        return OfSpark, (None, self.meaning, self.why, str(self))


def is_sparks(value: Any) -> bool:
    """Return True if a value is a Column of pyspark, without importing pyspark."""
    module = type(value).__module__
    return type(value).__name__ == "Column" and module.partition(".")[0] == "pyspark"


class Evaluated:
    """An expression as a function of key and value, which operators call; `column` is the
    expression.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self._evaluate = compiled(column)

    def __call__(self, key: Any, value: Any) -> Any:
        """Return the value of the expression for a record."""
        return self._evaluate(key, value)

    def __reduce__(self) -> tuple[type["Evaluated"], tuple[Column]]:
        return Evaluated, (self.column,)


@dataclass(frozen=True)
class Pair:
    """Two expressions as a function that returns a key and a value."""

    key: Evaluated | OfSpark
    value: Evaluated | OfSpark

    def __call__(self, key: Any, value: Any) -> tuple[Any, Any]:
        """Return the new key and the new value."""
        return self.key(key, value), self.value(key, value)

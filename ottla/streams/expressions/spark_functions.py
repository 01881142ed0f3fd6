"""Spark's functions over Python's values, to evaluate expressions of pyspark without a JVM.

`STRICT` functions return None if an operand is None, `LOOSE` functions handle None. All follow
Spark 4 with its default settings: overflows and divisions by zero raise, and a string that is
combined with a number is parsed as one. `tests/spark/test_pyspark_columns.py` compares both
implementations.

Not done: dates and times, decimals, maps, higher-order functions, JSON, aggregates, `rand` and
other nondeterministic functions. The last digit of `exp`, `ln`, `pow` and trigonometric functions
is the C library's. `cast` of a double to a string has the fewest digits, while Java before 19
sometimes has one more. Whole numbers have 64 bits where Spark may have 32, and are not converted to
doubles if only the value of another branch (of `CASE`, `coalesce`, `greatest`) would show that it
is a double.
"""

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from ottla.streams.expressions.column_operations import (
    comparison,
    fitting,
    remainder,
)
from ottla.streams.expressions.spark_texts import TEXTS, concat_ws, locate
from ottla.streams.expressions.spark_values import alike, cast_to, floating, is_whole, whole

Evaluate = Callable[[Any, Any], Any]
"""Returns a value for a record's key and value."""

_WIDE = Context(prec=400)


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        left, right = alike(left, right)
        if isinstance(left, float):
            return function(left, right)
        if not (is_whole(left) and is_whole(right)):
            raise TypeError(f"{left!r} and {right!r} are not 64-bit numbers: cast them")
        return fitting(function(left, right))

    return apply


def _compare(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    compare = comparison(function)
    return lambda left, right: compare(*alike(left, right))


_EQUAL, _LESS = _compare(operator.eq), _compare(operator.lt)
_ADD, _SUBTRACT = _arithmetic(operator.add), _arithmetic(operator.sub)
_MULTIPLY = _arithmetic(operator.mul)


def _bits(value: Any) -> int:
    """Return a whole number. Raises TypeError for other values, which Spark does not convert
    implicitly.
    """
    if not is_whole(value):
        raise TypeError(f"{value!r} is not a whole number: cast it")
    return int(value)


def _nonzero(value: Any, instead: str) -> Any:
    if value == 0:
        raise ZeroDivisionError(f"division by zero: {instead} returns None instead")
    return value


def _divide(left: Any, right: Any) -> float:
    return floating(left) / floating(_nonzero(right, "try_divide"))


def _remainder(left: Any, right: Any) -> Any:
    return remainder(*alike(left, _nonzero(right, "try_mod")))


def _whole_divide(left: Any, right: Any) -> int:
    left, right = _bits(left), _bits(_nonzero(right, "try_divide"))
    result = abs(left) // abs(right)
    return int(fitting(result if (left < 0) == (right < 0) else -result))


def _positive_remainder(left: Any, right: Any) -> Any:
    left, right = alike(left, _nonzero(right, "try_mod"))
    result = remainder(left, right)
    return remainder(result + right, right) if result < 0 else result


def _trying(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(function)
    def attempt(left: Any, right: Any) -> Any:
        try:
            return function(left, right)
        except (OverflowError, ZeroDivisionError):
            return None

    return attempt


def _negative(value: Any) -> Any:
    return fitting(-value) if is_whole(value) else -floating(value)


def _magnitude(value: Any) -> Any:
    return fitting(abs(value)) if is_whole(value) else abs(floating(value))


def _double(function: Callable[..., float]) -> Callable[..., float]:
    """Wrap a function of floating-point numbers to return NaN and infinities as Java does."""

    @functools.wraps(function)
    def apply(*values: Any) -> float:
        numbers = [floating(value) for value in values]
        try:
            return function(*numbers)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return apply


def _above(limit: float, function: Callable[[float], float]) -> Callable[[Any], float | None]:
    """Return a logarithm that is None for operands of at most `limit`."""

    def apply(value: Any) -> float | None:
        number = floating(value)
        return None if number <= limit else function(number)

    return apply


def _log(first: Any, *second: Any) -> float | None:
    if not second:
        return _above(0, math.log)(first)
    base, number = floating(first), floating(second[0])
    if base <= 0 or number <= 0:
        return None
    below = math.log(base)
    return math.log(number) / below if below else math.copysign(math.inf, math.log(number))


def _power(left: float, right: float) -> float:
    if left == 0 and right < 0:
        is_odd = right == math.trunc(right) and right % 2 == 1
        return math.copysign(math.inf, left) if is_odd else math.inf
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _atan2(left: float, right: float) -> float:
    # Spark normalizes negative zeros first.
    return math.atan2(left + 0.0, right + 0.0)


def _to_whole(function: Callable[[float], int]) -> Callable[[Any], int]:
    return lambda value: int(value) if is_whole(value) else whole(_integral(function, value))


def _integral(function: Callable[[float], int], value: Any) -> float | int:
    number = floating(value)
    return function(number) if math.isfinite(number) else number


def _rounded(rounding: str) -> Callable[..., Any]:
    def apply(value: Any, digits: int = 0) -> Any:
        step = Decimal(1).scaleb(-digits)
        if is_whole(value):
            return fitting(int(Decimal(value).quantize(step, rounding, _WIDE)))
        number = floating(value)
        if not math.isfinite(number):
            return number
        # Spark's decimals have no negative zero.
        return float(Decimal(repr(number)).quantize(step, rounding, _WIDE)) + 0.0

    return apply


def _sign(value: Any) -> float:
    number = floating(value)
    return number if math.isnan(number) or number == 0 else math.copysign(1.0, number)


def _extract(value: Any, selector: Any) -> Any:
    """Return a field by its name, an item by its index from 0, or the value of a key in a map."""
    if isinstance(value, list | tuple) and is_whole(selector):
        if not 0 <= selector < len(value):
            raise IndexError(
                f"index {selector} is out of range for {len(value)} items: get() returns None instead"
            )
        return value[selector]
    return _named_field(value, selector)


def _named_field(value: Any, name: Any) -> Any:
    """Return a field of a mapping or an object, ignoring case; None if a mapping does not have it."""
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        same = (field for key, field in value.items() if str(key).lower() == str(name).lower())
        return next(same, None)
    if isinstance(value, str | bytes | int | float | list):
        raise TypeError(f"{value!r} is not a struct, so it has no field {name}")
    if hasattr(value, str(name)):
        return getattr(value, name)
    same = (attribute for attribute in dir(value) if attribute.lower() == str(name).lower())
    result = next(same, None)
    if result is None:
        raise TypeError(f"{value!r} has no field {name}")
    return getattr(value, result)


def _element_at(value: Any, index: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(index)
    if not 0 < abs(index) <= len(value):
        raise IndexError(
            f"there is no item {index} among {len(value)}: 1 is the first, -1 the last"
        )
    return value[index - 1 if index > 0 else index]


def _get(value: Sequence[Any], index: int) -> Any:
    return value[index] if 0 <= index < len(value) else None


def _array_contains(value: Sequence[Any], wanted_value: Any) -> bool | None:
    if any(element is not None and _EQUAL(element, wanted_value) for element in value):
        return True
    return None if None in value else False


def _truth(value: Any) -> Any:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false: compare it with something")
    return value


def _and(inner: Sequence[Evaluate]) -> Evaluate:
    left, right = inner

    def evaluate(key: Any, value: Any) -> bool | None:
        first = _truth(left(key, value))
        if first is False:
            return False
        second = _truth(right(key, value))
        return second if first or second is False else None

    return evaluate


def _or(inner: Sequence[Evaluate]) -> Evaluate:
    left, right = inner

    def evaluate(key: Any, value: Any) -> bool | None:
        first = _truth(left(key, value))
        if first:
            return True
        second = _truth(right(key, value))
        return second if first is False or second else None

    return evaluate


def _coalesce(inner: Sequence[Evaluate]) -> Evaluate:
    def evaluate(key: Any, value: Any) -> Any:
        result = (operand(key, value) for operand in inner)
        return next((operand_value for operand_value in result if operand_value is not None), None)

    return evaluate


def _not(value: Any) -> bool:
    return not _truth(value)


def _null_safe_equal(left: Any, right: Any) -> bool:
    return left is right if left is None or right is None else _EQUAL(left, right)


def _in(value: Any, *candidates: Any) -> bool | None:
    if value is None:
        return None
    if any(other is not None and _EQUAL(value, other) for other in candidates):
        return True
    return None if None in candidates else False


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def choose(*values: Any) -> Any:
        result = None
        for candidate in values:
            if candidate is not None and (result is None or is_better(candidate, result)):
                result = candidate
        is_floating = is_whole(result) and any(isinstance(value, float) for value in values)
        return floating(result) if is_floating else result

    return choose


def _null_if(value: Any, other: Any) -> Any:
    return None if value is None or (other is not None and _EQUAL(value, other)) else value


def _nan_else(value: Any, other: Any) -> Any:
    return other if isinstance(value, float) and math.isnan(value) else value


def _is_nan(value: Any) -> bool:
    return value is not None and math.isnan(floating(value))


DOUBLES: dict[str, Callable[..., Any]] = {
    "/": _divide,
    "try_divide": _trying(_divide),
    "sqrt": _double(math.sqrt),
    "cbrt": _double(math.cbrt),
    "exp": _double(math.exp),
    "expm1": _double(math.expm1),
    "ln": _above(0, math.log),
    "log": _log,
    "log10": _above(0, math.log10),
    "log2": _above(0, math.log2),
    "log1p": _above(-1, math.log1p),
    "power": _double(_power),
    "hypot": _double(math.hypot),
    "sin": _double(math.sin),
    "cos": _double(math.cos),
    "tan": _double(math.tan),
    "asin": _double(math.asin),
    "acos": _double(math.acos),
    "atan": _double(math.atan),
    "atan2": _double(_atan2),
    "sinh": _double(_sinh),
    "cosh": _double(math.cosh),
    "tanh": _double(math.tanh),
    "degrees": _double(math.degrees),
    "radians": _double(math.radians),
    "signum": _sign,
}
"""Functions that always return a floating-point number."""

STRICT: dict[str, Callable[..., Any]] = (
    DOUBLES
    | TEXTS
    | {
        "+": _ADD,
        "-": _SUBTRACT,
        "*": _MULTIPLY,
        "%": _remainder,
        "div": _whole_divide,
        "pmod": _positive_remainder,
        "negative": _negative,
        "positive": lambda value: value,
        "abs": _magnitude,
        "try_add": _trying(_ADD),
        "try_subtract": _trying(_SUBTRACT),
        "try_multiply": _trying(_MULTIPLY),
        "try_mod": _trying(_remainder),
        "=": _EQUAL,
        "<": _LESS,
        "<=": lambda left, right: not _LESS(right, left),
        ">": lambda left, right: _LESS(right, left),
        ">=": lambda left, right: not _LESS(left, right),
        "not": _not,
        "&": lambda left, right: _bits(left) & _bits(right),
        "|": lambda left, right: _bits(left) | _bits(right),
        "^": lambda left, right: _bits(left) ^ _bits(right),
        "~": lambda value: ~_bits(value),
        "ceil": _to_whole(math.ceil),
        "floor": _to_whole(math.floor),
        "round": _rounded(ROUND_HALF_UP),
        "bround": _rounded(ROUND_HALF_EVEN),
        "size": len,
        "array_contains": _array_contains,
        "element_at": _element_at,
        "get": _get,
        "extract": _extract,
    }
)

LOOSE: dict[str, Callable[..., Any]] = {
    "<=>": _null_safe_equal,
    "isnull": lambda value: value is None,
    "isnotnull": lambda value: value is not None,
    "isnan": _is_nan,
    "nanvl": _nan_else,
    "in": _in,
    "nullif": _null_if,
    "greatest": _extreme(lambda left, right: _LESS(right, left)),
    "least": _extreme(_LESS),
    "concat_ws": concat_ws,
    "locate": locate,
    "array": lambda *values: list(values),
}

LAZY: dict[str, Callable[[Sequence[Evaluate]], Evaluate]] = {
    "and": _and,
    "or": _or,
    "coalesce": _coalesce,
}
"""Functions that evaluate their operands only if they need them; the operands are functions."""

ALIASES = {
    "==": "=",
    "!": "not",
    "mod": "%",
    "ceiling": "ceil",
    "pow": "power",
    "sign": "signum",
    "ucase": "upper",
    "lcase": "lower",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "position": "locate",
    "char": "chr",
    "substr": "substring",
    "sha1": "sha",
    "cardinality": "size",
    "nvl": "coalesce",
    "ifnull": "coalesce",
}
"""Aliases of functions."""

BRANCHES = frozenset(("coalesce", "greatest", "least"))
"""Functions whose operands Spark converts to one type, because any of them may be the result."""


def strict(name: str) -> Callable[..., Any]:
    """Return a function of STRICT, or the cast named `cast <type>` or `try_cast <type>`."""
    verb, _, kind = name.partition(" ")
    result = cast_to(kind) if kind else None
    if result is None:
        return STRICT[name]
    return result if verb == "cast" else lambda value: _tried(result, value)


def _tried(cast: Callable[[Any], Any], value: Any) -> Any:
    try:
        return cast(value)
    except (ValueError, OverflowError):
        return None

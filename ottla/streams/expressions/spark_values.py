"""Spark's conversions of Python's values: implicit and explicit casts, and the format of numbers.

Spark's type of a column follows from the value: int is bigint, float is double, str is string,
bytes is binary, list is array, and objects with fields are structs. All conversions follow
`spark.sql.ansi.enabled`, Spark 4's default: values that cannot be converted raise.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ottla.streams.expressions.column_operations import fitting

_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_FLOATING = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[fd]?", re.ASCII | re.IGNORECASE)
_SPECIAL = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
# Java trims all characters up to the space, and the delete character, before it parses a number.
_BLANKS = "".join(map(chr, range(33))) + "\x7f"


def is_whole(value: Any) -> bool:
    """Return True if a value is a whole number; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def text(value: Any) -> str:
    """Format a value as Spark does. Raises TypeError for values with fields or items."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _floating_text(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int | Decimal):
        return str(value)
    raise TypeError(f"Spark's text of {value!r} is not known here")


def _floating_text(value: float) -> str:
    """Format a floating-point number as Java does, with the fewest digits that identify it."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    significand = "".join(map(str, digits)).rstrip("0")
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{significand[0]}.{significand[1:] or '0'}E{power}"


def whole(value: Any, bits: int = 64) -> int:
    """Cast to a whole number. Raises ValueError for an invalid string, OverflowError above `bits`."""
    if isinstance(value, str):
        stripped = value.strip(_BLANKS)
        if _WHOLE.fullmatch(stripped) is None:
            raise ValueError(f"{value!r} is not a whole number")
        return int(fitting(int(stripped), bits))
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError(f"{value} is not a whole number")
    if isinstance(value, int | float | Decimal):
        return int(fitting(int(value), bits))
    raise _no_cast(value, "a whole number")


def floating(value: Any) -> float:
    """Cast to a floating-point number. Raises ValueError for an invalid string."""
    if isinstance(value, str):
        stripped = value.strip(_BLANKS)
        if stripped.lower() in _SPECIAL:
            return _SPECIAL[stripped.lower()]
        match = _FLOATING.fullmatch(stripped)
        if match is None:
            raise ValueError(f"{value!r} is not a number")
        return float(match[1])
    if isinstance(value, int | float | Decimal):
        return float(value)
    raise _no_cast(value, "a number")


def flag(value: Any) -> bool:
    """Cast to a boolean. Raises ValueError for an invalid string."""
    if isinstance(value, str):
        lowered = value.strip(_BLANKS).lower()
        if lowered not in _TRUE | _FALSE:
            raise ValueError(f"{value!r} is neither true nor false")
        return lowered in _TRUE
    if isinstance(value, int | float | Decimal):
        return bool(value)
    raise _no_cast(value, "true or false")


def _binary(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise _no_cast(value, "bytes")


def _no_cast(value: Any, type_name: str) -> TypeError:
    return TypeError(f"{value!r} does not become {type_name}")


def cast_to(name: str) -> Callable[[Any], Any] | None:
    """Return the cast to a type of Spark, such as `bigint`; None if the type is not supported here."""
    if name in _INTEGERS:
        bits = _INTEGERS[name]
        return lambda value: whole(value, bits)
    return {"string": text, "double": floating, "boolean": flag, "binary": _binary}.get(name)


def alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Convert two values to one type, as Spark does for comparisons. Raises TypeError if it cannot.

    A string that is compared with a number or boolean is parsed.
    """
    if type(left) is type(right):
        return left, right
    for value, other in ((left, right), (right, left)):
        if isinstance(value, str) and isinstance(other, bool | int | float | Decimal):
            read = flag if isinstance(other, bool) else whole if is_whole(other) else floating
            return alike(
                *(read(operand) if operand is value else operand for operand in (left, right))
            )
    if isinstance(left, bool | str | bytes) or isinstance(right, bool | str | bytes):
        raise TypeError(f"Spark has no common type for {left!r} and {right!r}: cast one of them")
    if isinstance(left, float) or isinstance(right, float):
        return floating(left), floating(right)
    return left, right

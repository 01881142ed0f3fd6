"""The operations of Column expressions on single values, which are never None.

Whole numbers have 64 bits; if one operand is a floating-point number, both are converted. NaN
equals itself and is the greatest number.
"""

import math
from collections.abc import Callable
from typing import Any


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Convert both operands to floating-point numbers if one of them is."""
    if (
        isinstance(left, float) != isinstance(right, float)
        and _is_number(left)
        and _is_number(right)
    ):
        return float(left), float(right)
    return left, right


def arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operation of two numbers; it raises TypeError for other operands."""

    def apply(left: Any, right: Any) -> Any:
        if not (_is_number(left) and _is_number(right)):
            raise TypeError(f"arithmetic takes numbers, not {left!r} and {right!r}")
        return fitting(function(*_alike(left, right)))

    return apply


def fitting(value: Any, bits: int = 64) -> Any:
    """Return a value. Raises OverflowError if it is a whole number of more than `bits` bits."""
    if isinstance(value, int) and not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError(f"{value} has more than {bits} bits")
    return value


def divided(left: Any, right: Any) -> float | None:
    """Divide and return a floating-point number; None for a division by zero."""
    return None if right == 0 else float(left) / float(right)


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder, with the sign of the left operand; None for a division by zero."""
    if right == 0:
        return None
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    result = abs(left) % abs(right)
    return -result if left < 0 else result


def comparison(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison in which NaN equals itself and is the greatest number."""

    def compare(left: Any, right: Any) -> bool:
        if type(left) is type(right) and type(left) is not float:
            return function(left, right)
        left, right = _alike(left, right)
        if isinstance(left, float):
            return function(
                (math.isnan(left), _settled(left)), (math.isnan(right), _settled(right))
            )
        return function(left, right)

    return compare


def _settled(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def substring(text: str, start: int, length: int) -> str:
    """Return a substring. The first character is 1; a negative start counts from the end."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(0, first) : max(0, first + length)]


def each_character(change: Callable[[str], str], text: str) -> str:
    """Convert a string character by character; if one would become several (ß), it is kept, as in
    Spark.
    """
    if text.isascii():
        return change(text)
    return "".join(
        result if len(result := change(character)) == 1 else character for character in text
    )

"""Python values, cast and formatted as by Spark."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.expressions.spark_values import alike, cast_to, flag, floating, text, whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-1.25e-10, "-1.25E-10"),
        (-0.0, "-0.0"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (True, "true"),
        (b"ab", "ab"),
        (12, "12"),
    ],
)
def test_a_value_is_formatted_as_in_java(value: Any, expected: str) -> None:
    """The format of floating-point numbers is Java's."""
    assert text(value) == expected


@pytest.mark.parametrize(
    ("cast", "value", "expected"),
    [
        (whole, " -7\n", -7),
        (whole, -7.9, -7),
        (whole, True, 1),
        (floating, "1.5e3D", 1500.0),
        (floating, " -INFINITY ", -math.inf),
        (flag, "Yes", True),
        (flag, 0.0, False),
    ],
)
def test_casts(cast: Callable[[Any], Any], value: Any, expected: Any) -> None:
    """Whitespace around a text is ignored."""
    assert cast(value) == expected


@pytest.mark.parametrize(
    ("cast", "value", "error"),
    [
        (whole, "1.5", "not a whole number"),
        (whole, math.nan, "not a whole number"),
        (whole, 1e300, "more than 64 bits"),
        (cast_to("tinyint"), 128, "more than 8 bits"),
        (whole, [1], "does not become a whole number"),
        (floating, "1_0", "not a number"),
        (floating, b"1", "does not become a number"),
        (flag, "maybe", "neither true nor false"),
        (cast_to("binary"), 1, "does not become bytes"),
        (text, {"a": 1}, "not known here"),
    ],
)
def test_invalid_casts_raise(cast: Callable[[Any], Any], value: Any, error: str) -> None:
    """Casts are ANSI casts, Spark 4's default."""
    with pytest.raises((ValueError, OverflowError, TypeError), match=error):
        cast(value)


def test_two_values_get_a_common_type() -> None:
    """A text is converted to the number or boolean that it is compared with."""
    assert alike("7", 7) == (7, 7)
    assert alike(0.5, "1") == (0.5, 1.0)
    assert alike("true", False) == (True, False)
    assert alike(1, 0.5) == (1.0, 0.5)
    for one, other in ((True, 1), (b"a", "a"), (b"a", 1)):
        with pytest.raises(TypeError, match="cast one of them"):
            alike(one, other)
    assert cast_to("decimal(3,1)") is None

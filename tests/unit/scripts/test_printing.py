"""Values as Apache Kafka's tools print them."""

import math
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla_scripts.printing import java_double, java_float

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (5.0, "5.0"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (-0.00012, "-1.2E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e22, "1.0E22"),
        (1.0300843656201408e-71, "1.0300843656201408E-71"),
        (sys.float_info.max, "1.7976931348623157E308"),
        (2.5e-310, "2.5E-310"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_double_is_printed_as_java_does(value: float, text: str) -> None:
    """Very small and very large numbers have an exponent."""
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_can_be_read_again(value: float) -> None:
    """No digit is lost, and there is a digit on both sides of the point."""
    text = java_double(value)
    assert float(text) == value
    mantissa, _, _ = text.partition("E")
    assert all(mantissa.removeprefix("-").split("."))


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (16777216.0, "1.6777216E7"), (1e-10, "1.0E-10"), (3.5, "3.5")]
)
def test_number_of_four_bytes_has_the_fewest_digits(value: float, text: str) -> None:
    """The double of the same bytes is 0.10000000149011612 instead of 0.1."""
    (stored,) = struct.unpack(">f", struct.pack(">f", value))
    assert java_float(stored) == text

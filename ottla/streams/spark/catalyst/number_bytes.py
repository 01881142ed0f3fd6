"""Numbers as Kafka's serializers write them, big-endian, read and written by Spark's own functions."""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

_FRACTION_BITS = 52
_FRACTION = (1 << _FRACTION_BITS) - 1
_EXPONENT = 0x7FF
_BIAS = 1075
"""Subtracted from the exponent, so that the fraction is an integer."""
_INT = 1 << 31


def read_whole(raw: SparkColumn, size: int) -> SparkColumn:
    """Return the signed integer in `size` bytes; null for another length."""
    fitting = F.when(F.length(raw) == size, raw)
    # A negative base makes the result signed.
    result = F.conv(F.hex(fitting), 16, -10).cast("bigint")
    if size == 8:
        return result
    return F.when(result >= _INT, result - 2 * _INT).otherwise(result)


def read_double(bits: SparkColumn, doubts: list[SparkColumn]) -> SparkColumn:
    """Return the floating-point number of 64 bits; infinities and NaN are doubts."""
    exponent = F.shiftrightunsigned(bits, _FRACTION_BITS).bitwiseAND(F.lit(_EXPONENT))
    fraction = bits.bitwiseAND(F.lit(_FRACTION))
    doubts.append(exponent == _EXPONENT)
    least = F.lit(1 - _BIAS + 0.0)
    # Powers of two and products with them are exact.
    small = fraction.cast("double") * F.pow(F.lit(2.0), least)
    large = (fraction + F.lit(_FRACTION + 1)).cast("double") * F.pow(
        F.lit(2.0), (exponent - _BIAS).cast("double")
    )
    size = F.when(exponent == 0, small).otherwise(large)
    return F.when(bits < 0, -size).otherwise(size)


def long_bytes(value: SparkColumn) -> SparkColumn:
    """Return an integer in eight bytes."""
    return F.unhex(F.lpad(F.hex(value), 16, "0"))


def int_bytes(value: SparkColumn, doubts: list[SparkColumn]) -> SparkColumn:
    """Return an integer in four bytes; a doubt if it needs more."""
    doubts.append((value < -_INT) | (value >= _INT))
    return F.unhex(F.substring(F.lpad(F.hex(value), 16, "0"), 9, 8))

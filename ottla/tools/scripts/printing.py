"""The output of scripts: lines on standard output and standard error, JSON, Java's forms of values."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def out(text: str = "") -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{text}\n")


def err(text: str = "") -> None:
    """Write a line to standard error, after flushing standard output."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def as_json(value: Any) -> None:
    """Write a value as JSON: the extension `--output json`."""
    out(json.dumps(value, default=str))


def compact(value: Any) -> str:
    """Return JSON without spaces, as Apache Kafka's tools write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def left(cells: Iterable[Any], widths: Iterable[int]) -> str:
    """Return cells padded on the right to their widths, as Java's `%-15s` pads; 0 pads none."""
    return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True))


def java_list(values: Iterable[Any]) -> str:
    """Return a collection as Java's toString writes it."""
    return f"[{', '.join(map(str, values))}]"


def java_map(values: Mapping[Any, Any]) -> str:
    """Return a map as Java's toString writes it."""
    return "{" + ", ".join(f"{key}={value}" for key, value in values.items()) + "}"


def java_double(value: float) -> str:
    """Return a number as Java's Double.toString writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    magnitude = abs(value)
    if magnitude and not 1e-3 <= magnitude < 1e7:
        digits, _, exponent = f"{value:e}".partition("e")
        shortest = repr(value / 10 ** int(exponent))
        mantissa = shortest if "." in shortest else f"{shortest}.0"
        del digits
        return f"{mantissa}E{int(exponent)}"
    return repr(float(value))

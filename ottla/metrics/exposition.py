"""The text format of Prometheus (version 0.0.4): families of samples in, chunks of text out.

A family is written while it is read, so a broker with 10 000 partitions can pause between two
chunks. Names are jmx_exporter's and kafka_exporter's; the caller passes them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Lines of one chunk: about 0.1 ms of work.
_LINES_AT_ONCE = 100

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

# Labels in their text format, and a value.
Sample = tuple[str, float]


class Kind(Enum):
    """The type of a family's values."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"
    UNTYPED = "untyped"


class Family(NamedTuple):
    """All samples of one name. `suffixed` are the samples of a summary or histogram, by the suffix
    of the name.
    """

    name: str
    kind: Kind
    help: str
    samples: Iterable[Sample]
    suffixed: Mapping[str, Iterable[Sample]] = {}


def labels(**pairs: object) -> str:
    """Return labels in the format that follows a name; empty without labels."""
    if not pairs:
        return ""
    inside = ",".join(f'{name}="{str(value).translate(_ESCAPED)}"' for name, value in pairs.items())
    return f"{{{inside}}}"


def counter(name: str, help_text: str, samples: Iterable[Sample] | float) -> Family:
    """Return a family of values that only increase."""
    return Family(name, Kind.COUNTER, help_text, _samples(samples))


def gauge(name: str, help_text: str, samples: Iterable[Sample] | float) -> Family:
    """Return a family of values that increase and decrease."""
    return Family(name, Kind.GAUGE, help_text, _samples(samples))


def _samples(samples: Iterable[Sample] | float) -> Iterable[Sample]:
    return [("", samples)] if isinstance(samples, int | float) else samples


def render(families: Iterable[Family]) -> Iterator[str]:
    """Yield the text of families in chunks; families without samples are omitted."""
    for family in families:
        head = f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind.value}\n"
        for suffix, samples in [("", family.samples), *family.suffixed.items()]:
            name = family.name + suffix
            lines: list[str] = []
            for written, value in samples:
                lines.append(f"{name}{written} {_number(value)}\n")
                if len(lines) >= _LINES_AT_ONCE:
                    yield head + "".join(lines)
                    head = ""
                    lines.clear()
            if lines:
                yield head + "".join(lines)
                head = ""


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"

"""The output of scripts: lines on standard output and standard error, JSON, Java's forms of values.

The reader of an output may have gone, as in `kafka-topics … | head -1`. Java's System.out ignores
that: a tool of Apache Kafka does its work and ends with its usual exit code, without a message.
Tools that report until they are stopped would never end, so ours do.
"""

import io
import json
import math
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ottla_scripts.exits import Exit

_FLOAT, _FLOAT_DIGITS = struct.Struct(">f"), 10


class _Sentences:
    """The sentences of a script with `--output json`, and whether it wrote JSON of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.has_json = False


_sentences: _Sentences | None = None


@contextmanager
def sentences_as_json() -> Iterator[None]:
    """Print the sentences that `out` gets in this block as one line of JSON: `{"messages": […]}`.

    The line is left out if there are no sentences but JSON of the script itself.
    """
    global _sentences
    former, _sentences = _sentences, (sentences := _Sentences())
    try:
        yield
    finally:
        _sentences = former
        lines = [line for text in sentences.lines for line in text.splitlines() if line.strip()]
        if lines or not sentences.has_json:
            sys.stdout.write(f"{json.dumps({'messages': lines})}\n")


def collects_sentences() -> bool:
    """Return True within `sentences_as_json`."""
    return _sentences is not None


def out(text: str = "", *, end: str = "\n") -> None:
    """Write a line to standard output; `sentences_as_json` collects it instead."""
    if _sentences is None:
        sys.stdout.write(f"{text}{end}")
    else:
        _sentences.lines.append(text)


def json_line(text: str) -> None:
    """Write a line that is JSON to standard output, also within `sentences_as_json`."""
    begin_json()
    sys.stdout.write(f"{text}\n")


def begin_json() -> None:
    """Note that the script writes JSON to standard output itself."""
    if _sentences is not None:
        _sentences.has_json = True


def err(text: str = "") -> None:
    """Write a line to standard error, after flushing standard output."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def as_json(value: Any) -> None:
    """Write a value as JSON: the extension `--output json`."""
    json_line(json.dumps(value, default=str))


class _Stream(io.FileIO):
    """A file descriptor that accepts everything once its reader has gone, or its disk was full."""

    has_reader = True
    _has_failed = False

    def write(self, data: Any, /) -> int:
        """Write bytes, or discard them if there is no reader. The first other error is raised."""
        if not self._has_failed:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.has_reader = False
            except OSError as error:
                self._has_failed = True
                title = "standard output" if self.fileno() == 1 else "standard error"
                raise OSError(error.errno, error.strerror, title) from None
        return memoryview(data).nbytes


def ignore_closed_pipes() -> None:
    """Replace standard output and standard error, unless a test has replaced them."""
    for name in ("stdout", "stderr"):
        former = getattr(sys, name)
        if former is None or former is not getattr(sys, f"__{name}__"):
            continue
        former.flush()
        raw = _Stream(former.fileno(), "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw),
            former.encoding,
            former.errors,
            line_buffering=former.line_buffering,
            write_through=former.write_through,
        )
        setattr(sys, name, stream)


def has_reader() -> bool:
    """Flush standard output, and return False if nothing reads it any more."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Stream) or raw.has_reader


def flush_or_end() -> None:
    """Flush standard output; end the script with exit code 0 if nothing reads it any more."""
    if not has_reader():
        raise Exit(0)


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
    if not magnitude or 1e-3 <= magnitude < 1e7:
        return repr(float(value))
    number, _, power = repr(magnitude).partition("e")
    whole, _, fraction = number.partition(".")
    digits = f"{whole}{fraction}".lstrip("0")
    exponent = int(power or 0) + len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def java_float(value: float) -> str:
    """Return a number of four bytes as Java's Float.toString writes it: with the fewest digits."""
    if not math.isfinite(value):
        return java_double(value)
    candidates = (float(f"{value:.{count}g}") for count in range(1, _FLOAT_DIGITS))
    packed = _FLOAT.pack(value)
    return java_double(next((n for n in candidates if _FLOAT.pack(n) == packed), value))

"""The output of scripts: lines on standard output and standard error, JSON, Java's forms of values.

The reader of an output may have gone, as in `kafka-topics … | head -1`. Java's System.out ignores
that: a tool of Apache Kafka does its work and ends with its usual exit code, without a message.
Tools that report until they are stopped would never end, so ours do.
"""

import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import Unsupported
from ottla.tools.scripts.exits import Exit


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


def compact(value: Any) -> str:
    """Return JSON without spaces, as Apache Kafka's tools write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class _Stream(io.FileIO):
    """A file descriptor that accepts everything once its reader has gone."""

    has_reader = True

    def write(self, data: Any, /) -> int:
        """Write bytes, or discard them if there is no reader."""
        try:
            return super().write(data)
        except BrokenPipeError:
            self.has_reader = False
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
    if magnitude and not 1e-3 <= magnitude < 1e7:
        digits, _, exponent = f"{value:e}".partition("e")
        shortest = repr(value / 10 ** int(exponent))
        mantissa = shortest if "." in shortest else f"{shortest}.0"
        del digits
        return f"{mantissa}E{int(exponent)}"
    return repr(float(value))


# The Java client's message for an error code whose response has none.
_JAVA_MESSAGES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed "
        "to it."
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
}
# The Java client's exceptions with other names than their codes.
_JAVA_EXCEPTIONS = {
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmpty",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorization",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorization",
}


def java_message(error: Exception) -> str:
    """Return the message of the Java client's exception for an error."""
    if isinstance(error, ApiError):
        is_default = error.message == error.code.message
        return _JAVA_MESSAGES.get(error.code, error.message) if is_default else error.message
    if isinstance(error, Unsupported) and error.api:
        return f"The node does not support {_snake(error.api).upper()}"
    return str(error)


def java_exception(error: Exception) -> str:
    """Return an error as the Java client's exception prints it."""
    if isinstance(error, ApiError):
        name = "".join(part.capitalize() for part in error.code.name.split("_"))
        name = _JAVA_EXCEPTIONS.get(error.code, name)
    elif isinstance(error, Unsupported) and error.api:
        name = "UnsupportedVersion"
    else:
        return java_message(error)
    return f"org.apache.kafka.common.errors.{name}Exception: {java_message(error)}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)

"""Log lines as events: the event, then `name=value` for everything that varies.

A line is written with the standard library, in one form that a test enforces::

    _log.info("topic created topic=%s partitions=%d", topic, count)

The template contains the event and the names of the fields, so the same call produces a line of
text or a JSON object. Decisions are logged, requests are not. Lines that peers can provoke without
limit are limited in their rate.
"""

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

TEXT = "text"
JSON = "json"
# Below DEBUG, as log4j has it.
TRACE = 5

# The maximum of lines of one template from a logger that peers can provoke, and the window in
# seconds.
REPEATS_MAX = 20
REPEATS_SECONDS = 10.0

# The attribute of a record that has its fields in place of a template: the message is for people,
# and the JSON format writes the fields.
FIELDS = "fields"
# The logger of the audit log.
AUDIT = "ottla.audit"

_FIELD = re.compile(r" ([a-z_]+)=([^ ]*%[^ ]*)")
_CONVERSION = re.compile(r"%[#0\- +]*\d*(?:\.\d+)?[sdrfgx]")
TEMPLATE = re.compile(
    r"[a-z][^=%\n]*?(?: [a-z_]+=(?:[^ %]|%[#0\- +]*\d*(?:\.\d+)?[sdrfgx])+)*", re.ASCII
)
_WHOLE = ("%s", "%d", "%r")
_PLAIN = re.compile(r"[\w.:/@%+,\-\[\]{}()<>|*&^$#!?;~°µ…]+")
_CONTROL = re.compile(
    # Control characters, ends of lines, changes of direction, and halves of surrogate pairs.
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_RESERVED = frozenset({"time", "level", "logger", "event", "traceback"})
# The names of the loggers whose lines remote peers can provoke; asyncio logs errors of connections.
_PROVOKED = {"asyncio"}

Value = str | int | float | bool | None


class Stream(Protocol):
    """The destination of lines: a file, or a terminal that also displays something else."""

    def write(self, text: str, /) -> object:
        """Write a line."""
        ...

    def flush(self) -> object:
        """Flush the lines that were written."""
        ...


class Event(NamedTuple):
    """The event and the fields of a line."""

    name: str
    fields: dict[str, Value]


class _Template(NamedTuple):
    name: str
    # Name of the field, its format, and how many arguments that takes.
    fields: tuple[tuple[str, str, int], ...]


@lru_cache(maxsize=1024)
def _template(text: str) -> _Template | None:
    """Return the parts of a template; None if a line is not written as an event."""
    if not TEMPLATE.fullmatch(text):
        return None
    fields = list(_FIELD.finditer(text))
    name = text[: fields[0].start()] if fields else text
    return _Template(
        name, tuple((field[1], field[2], len(_CONVERSION.findall(field[2]))) for field in fields)
    )


def event_of(record: logging.LogRecord) -> Event:
    """Return the event of a record; lines of other libraries are events without fields."""
    template = _template(record.msg) if isinstance(record.msg, str) else None
    arguments = record.args if isinstance(record.args, tuple) else ()
    if template is None or sum(count for _, _, count in template.fields) != len(arguments):
        return Event(record.getMessage(), {})
    fields: dict[str, Value] = {}
    position = 0
    for name, form, count in template.fields:
        own_arguments = arguments[position : position + count]
        position += count
        fields[name] = _value(form, own_arguments)
    return Event(template.name, fields)


def _value(form: str, arguments: tuple[object, ...]) -> Value:
    """Return the value of a field, with its type unless the format changes the value."""
    first = arguments[0] if len(arguments) == 1 else None
    if form in _WHOLE and isinstance(first, str | int | float):
        return first
    text = form % arguments
    return float(text) if isinstance(first, float) and form.startswith("%.") else text


class TextFormatter(logging.Formatter):
    """Lines of text; values that a client chose are quoted, so that they cannot look like other
    fields.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, followed by the lines of a traceback."""
        event = event_of(record)
        parts = [self.formatTime(record), record.levelname, record.name, _escaped(event.name)]
        parts += [f"{name}={_quoted(value)}" for name, value in _fields(record, event)]
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        own: Mapping[str, Value] | None = getattr(record, FIELDS, None)
        event = event_of(record) if own is None else _own_event(own)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Value] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "event": event.name,
        }
        for name, value in _fields(record, event):
            fields[f"{name}_" if name in _RESERVED else name] = value
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return one_line(json.dumps(fields, ensure_ascii=False))


def _own_event(fields: Mapping[str, Value]) -> Event:
    """Return the event of a record that brings its fields; its time is the time of the line."""
    rest = {name: value for name, value in fields.items() if name not in ("time", "event")}
    return Event(str(fields.get("event", "")), rest)


def one_line(text: str) -> str:
    """Return a text with its control characters escaped, as JSON escapes them.

    Also those that only some programs take for the end of a line, those that change the direction
    of a text or control a terminal, and those that no encoding has.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _fields(record: logging.LogRecord, event: Event) -> Iterable[tuple[str, Value]]:
    yield from event.fields.items()
    unsaid = getattr(record, "unsaid_count", 0)
    if unsaid:
        yield "more_unsaid", unsaid


def _quoted(value: Value) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else one_line(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    return one_line(text.replace("\r", "\\r").replace("\n", "\\n"))


def provoked_logger(name: str) -> logging.Logger:
    """Return a logger whose lines remote peers can provoke: `Repeats` limits their rate."""
    _PROVOKED.add(name)
    return logging.getLogger(name)


class Repeats(logging.Filter):
    """Limits the number of lines of one template from each `provoked_logger`, and from asyncio."""

    def __init__(self) -> None:
        super().__init__()
        # By template: start of its window, lines written, lines suppressed.
        self._windows: dict[object, tuple[float, int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is to be written; adds the number of lines suppressed before
        it.
        """
        if record.name not in _PROVOKED:
            return True
        began, written, unsaid = self._windows.get(record.msg, (record.created, 0, 0))
        if not 0 <= record.created - began < REPEATS_SECONDS:
            record.unsaid_count = unsaid
            began, written, unsaid = record.created, 0, 0
        is_said = written < REPEATS_MAX
        self._windows[record.msg] = (began, written + is_said, unsaid + (not is_said))
        return is_said


def configure(
    stream: Stream, *, level: int, levels: Mapping[str, int], log_format: str = TEXT
) -> None:
    """Write the lines of the whole process to `stream`; `levels` are the levels of single loggers."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == JSON else TextFormatter())
    handler.addFilter(Repeats())
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level)
    for name, own in levels.items():
        logging.getLogger(name).setLevel(own)


logging.addLevelName(TRACE, "TRACE")

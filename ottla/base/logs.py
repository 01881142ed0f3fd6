"""Log lines as events: what happened, then `name=value` for everything that varies.

A line is written with the standard library, in one form that a law test holds everybody to::

    _log.info("topic created topic=%s partitions=%d", topic, count)

From the template its event and its fields are known, so the same call makes a line of text for people
and a JSON object for machines. One line a decision, none a request. Of lines that peers can provoke as
often as they like, only so many are let through in a while.
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

# Loggers whose lines strangers bring about; so many lines of one template in so many seconds.
PROVOKED = ("ottla.net.", "ottla.server.loop", "ottla.base.tasks", "asyncio")
REPEATS_MAX = 20
REPEATS_SECONDS = 10.0

_FIELD = re.compile(r" ([a-z_]+)=([^ ]*%[^ ]*)")
_CONVERSION = re.compile(r"%[#0\- +]*\d*(?:\.\d+)?[sdrfgx]")
TEMPLATE = re.compile(
    r"[a-z][^=%\n]*?(?: [a-z_]+=(?:[^ %]|%[#0\- +]*\d*(?:\.\d+)?[sdrfgx])+)*", re.ASCII
)
_WHOLE = ("%s", "%d", "%r")
_PLAIN = re.compile(r"[\w.:/@%+,\-\[\]{}()<>|*&^$#!?;~°µ…]+")
_RESERVED = frozenset({"time", "level", "logger", "event", "traceback"})

Value = str | int | float | bool | None


class Stream(Protocol):
    """Where lines go: a file, or a terminal with something else on it."""

    def write(self, text: str, /) -> object:
        """Take a line."""
        ...

    def flush(self) -> object:
        """Pass on what was written."""
        ...


class Event(NamedTuple):
    """What a line says."""

    name: str
    fields: dict[str, Value]


class _Template(NamedTuple):
    name: str
    # Name of the field, its format, and how many arguments that takes.
    fields: tuple[tuple[str, str, int], ...]


@lru_cache(maxsize=1024)
def _template(text: str) -> _Template | None:
    """Return the parts of a template; None for a line that is not written as an event."""
    if not TEMPLATE.fullmatch(text):
        return None
    found = list(_FIELD.finditer(text))
    name = text[: found[0].start()] if found else text
    return _Template(
        name, tuple((each[1], each[2], len(_CONVERSION.findall(each[2]))) for each in found)
    )


def event_of(record: logging.LogRecord) -> Event:
    """Return what a record says; other libraries' lines are an event without fields."""
    template = _template(record.msg) if isinstance(record.msg, str) else None
    arguments = record.args if isinstance(record.args, tuple) else ()
    if template is None or sum(count for _, _, count in template.fields) != len(arguments):
        return Event(record.getMessage(), {})
    fields: dict[str, Value] = {}
    position = 0
    for name, form, count in template.fields:
        taken = arguments[position : position + count]
        position += count
        fields[name] = _value(form, taken)
    return Event(template.name, fields)


def _value(form: str, taken: tuple[object, ...]) -> Value:
    """Return the value of one field, of the type that it has where it is whole."""
    first = taken[0] if len(taken) == 1 else None
    if form in _WHOLE and isinstance(first, str | int | float):
        return first
    text = form % taken
    return float(text) if isinstance(first, float) and form.startswith("%.") else text


class TextFormatter(logging.Formatter):
    """Lines for people; whatever a client chose cannot break out of its value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and the lines of a traceback behind it."""
        event = event_of(record)
        words = [self.formatTime(record), record.levelname, record.name, _escaped(event.name)]
        words += [f"{name}={_quoted(value)}" for name, value in _fields(record, event)]
        line = " ".join(words)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        event = event_of(record)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said: dict[str, Value] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "event": event.name,
        }
        for name, value in _fields(record, event):
            said[f"{name}_" if name in _RESERVED else name] = value
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def _fields(record: logging.LogRecord, event: Event) -> Iterable[tuple[str, Value]]:
    yield from event.fields.items()
    unsaid = getattr(record, "unsaid_count", 0)
    if unsaid:
        yield "more_unsaid", unsaid


def _quoted(value: Value) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")


class Repeats(logging.Filter):
    """Lets only so many lines of one template through, from the PROVOKED loggers."""

    def __init__(self) -> None:
        super().__init__()
        # By template: when its window began, lines let through, lines kept back.
        self._windows: dict[object, tuple[float, int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write it; the first one after a silence says how many were not."""
        if not record.name.startswith(PROVOKED):
            return True
        began, said, unsaid = self._windows.get(record.msg, (record.created, 0, 0))
        if not 0 <= record.created - began < REPEATS_SECONDS:
            record.unsaid_count = unsaid
            began, said, unsaid = record.created, 0, 0
        is_said = said < REPEATS_MAX
        self._windows[record.msg] = (began, said + is_said, unsaid + (not is_said))
        return is_said


def configure(
    stream: Stream, *, level: int, levels: Mapping[str, int], log_format: str = TEXT
) -> None:
    """Write the lines of the whole process to `stream`; `levels` are those of single loggers."""
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

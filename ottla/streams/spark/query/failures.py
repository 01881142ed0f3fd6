"""Turns the errors of queries into messages for users: the error itself, and the frames of the
user's functions.

Spark reports a failed task as a Java stack trace around a Python one; most frames are Spark's or
ours. The user needs the last line of the Python trace, and the line in the user's own files that
raised it.
"""

import re

from ottla.streams.model.errors import EngineBusyError, StreamsError
from ottla.streams.model.user_errors import is_users

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line \d+, in ')
_NOT_STARTED = (
    "Python worker failed to connect back",
    "Timed out while waiting for the Python worker to connect back",
)
_BUSY = (
    "Spark's Python workers did not start within 10 s, because this machine is too busy or its memory is full: "
    "stop other programs, or use fewer cores, and start again"
)
_JAVA_FRAME = re.compile(r"\s*at [\w.$]+\(")


class QueryError(StreamsError):
    """A query stopped; the message has the error that stopped it, and its location in the user's
    functions.
    """


class WorkerStartError(QueryError, EngineBusyError):
    """Spark's Python workers did not start within the time that Spark allows."""


def query_error(text: str) -> QueryError:
    """Return the error for the text of Spark's exception."""
    kind = WorkerStartError if _is_start(text) else QueryError
    return kind(explain(text))


def _is_start(text: str) -> bool:
    return any(sentence in text for sentence in _NOT_STARTED)


def explain(text: str) -> str:
    """Return the part of the text of Spark's exception that users need."""
    if _is_start(text):
        return _BUSY
    start = text.rfind(_TRACEBACK)
    if start < 0:
        first = next((line for line in text.splitlines() if line.strip()), "unknown error")
        return _without_tags(first)
    frames: list[str] = []
    message: list[str] = []
    is_shown = False
    for line in text[start:].splitlines()[1:]:
        frame = _FRAME.match(line)
        if frame and not message:
            is_shown = is_users(frame["file"])
        if _JAVA_FRAME.match(line) or line.strip().startswith("SQLSTATE"):
            break
        if line.startswith(" ") and not message:
            frames += [line.rstrip()] if is_shown else []
        else:
            message.append(_without_tags(line.strip()))
    description = "\n".join(message).strip() or "unknown error"
    return f"{description}\n" + "\n".join(frames) if frames else description


def _without_tags(line: str) -> str:
    """Return a line without the prefixes that Spark adds and without Java class names."""
    # The messages of the client and the brokers are complete sentences already.
    line = re.sub(r"^ottla\.(?:client|base)\.errors\.\w+: ", "", line)
    line = re.sub(r"^(?:[\w$]+\.)+(?=\w+(?:Error|Exception)\b)", "", line)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", line)

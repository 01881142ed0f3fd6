"""Errors of users' functions, for users: where in their files, at which record, in which node, and what to do.

The error stays what was raised, its type and its attributes. It gains a note (PEP 678), which every traceback shows
below its message, also that of a worker of Spark's; and it loses the frames of this package and of what it runs on, where
the last one is the user's: what raised within this package keeps all of them, for whoever mends it.
"""

import logging
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from ottla.base.errors import OttlaError
from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.model.records import RecordMetadata

_log = logging.getLogger(__name__)

_OURS = str(Path(__file__).resolve().parents[2]) + "/"
_LIBRARY = sysconfig.get_paths()["stdlib"] + "/"
# What this package runs on; other packages that a function calls are the user's choice.
_THEIRS = (
    "/pyspark/",
    "pyspark.zip/",
    "/py4j/",
    "/pyarrow/",
    "/pandas/",
    "/lib/python3",
    "<frozen ",
)
_RAISED = "Raised "
_MENDED = "Mend the function and start again"
_LEFT_OUT = "To leave such records out, give exception_handlers=ExceptionHandlers"
_UNPROCESSED = (
    f"{_MENDED}: it goes on with this record. {_LEFT_OUT}"
    "(processing=LogAndContinueProcessingExceptionHandler())."
)
_UNREAD = (
    "Give the source the serdes that the topic was written with. "
    f"{_LEFT_OUT}(deserialization=LogAndContinueExceptionHandler())."
)
_UNWRITTEN = (
    "Give the sink the serdes of what the steps before it make. "
    f"{_LEFT_OUT}(production=LogAndContinueProductionExceptionHandler())."
)


def is_users(file: str) -> bool:
    """Tell whether a frame's file is a user's: neither of this package, nor of Python, nor of what both run on."""
    return not (file.startswith((_OURS, _LIBRARY)) or any(part in file for part in _THEIRS))


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """Walk the frames through which an error came, the innermost last."""
    return (each.tb_frame for each in _chain(error))


def _chain(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def shorten(error: BaseException) -> None:
    """Take the frames that are not the user's out of an error's traceback, if the innermost one is the user's."""
    chain = list(_chain(error))
    kept = [each for each in chain if is_users(each.tb_frame.f_code.co_filename)]
    if not kept or kept[-1] is not chain[-1]:
        return
    found: TracebackType | None = None
    for each in reversed(kept):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    error.__traceback__ = found


def tell_place(
    error: Exception,
    metadata: RecordMetadata | None,
    node: str | None,
    advice: str | None = None,
) -> None:
    """Note at which record and in which node an error was raised, and what to do; once for each error.

    `advice` stands in place of what the type of the error suggests. Without a record it was a punctuator, or a processor that begins.
    """
    if any(each.startswith(_RAISED) for each in getattr(error, "__notes__", ())):
        return
    place = "" if node is None else f", in {node}"
    if metadata is None:
        error.add_note(f"{_RAISED}outside of a record{place}. {_MENDED}.")
        return
    record = f"topic {metadata.topic}, partition {metadata.partition}, offset {metadata.offset}"
    shown = _advice(error) if advice is None else advice
    error.add_note(f"{_RAISED}at the record of {record}{place}. {shown}".rstrip())


def _advice(error: Exception) -> str:
    if isinstance(error, DeserializationError):
        return _UNREAD
    if isinstance(error, SerializationError):
        return _UNWRITTEN
    # Others of this package's own say themselves what to do.
    return "" if isinstance(error, OttlaError) else _UNPROCESSED


def told(error: BaseException) -> str:
    """Return an error for a terminal: its type and message, its notes, and the user's frames."""
    found = traceback.TracebackException.from_exception(error)
    found.stack = traceback.StackSummary.from_list(
        [frame for frame in found.stack if is_users(frame.filename)]
    )
    found.__cause__ = found.__context__ = None
    frames = "".join(found.stack.format()).rstrip()
    message = "".join(found.format_exception_only()).strip()
    return f"{message}\n{frames}" if frames else message


class UsersErrors:
    """A context in which a user's code runs where nobody waits for its own errors: they become one of Ottla's."""

    def __init__(self, what: str, kind: type[OttlaError]) -> None:
        self._what = what
        self._kind = kind

    def __enter__(self) -> None:
        """Look from here on."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise an error of the kind in its place."""
        if isinstance(error, Exception):
            raise self._kind(f"{self._what}\n{told(error)}") from error


class LoggedErrors:
    """A context in which a user's code runs that nothing depends on: its errors are told in the log."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Look from here on."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Log it."""
        if not isinstance(error, Exception):
            return False
        _log.error("%s\n%s", self._what, told(error))
        return True

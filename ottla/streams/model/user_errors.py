"""Adds notes to errors of users' functions: the record, the node, and what to do.

The error keeps its type and attributes. It gets a note (PEP 678), which tracebacks show below the
message, also in Spark's workers. If its last frame is the user's, the frames of this package
and of its dependencies are removed. An error that was raised in this package keeps all frames, for
debugging.
"""

import logging
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from ottla.base.errors import OttlaError
from ottla.base.user_code import LoggedErrors
from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.model.records import RecordMetadata

_log = logging.getLogger(__name__)

_OURS = str(Path(__file__).resolve().parents[2]) + "/"
_LIBRARY = sysconfig.get_paths()["stdlib"] + "/"
# The dependencies of this package; other packages that a function calls are the user's choice.
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
_FIX = "Fix the function and restart the application"
_LEFT_OUT = "To skip such records, set exception_handlers=ExceptionHandlers"
_UNPROCESSED = (
    f"{_FIX}: it resumes with this record. {_LEFT_OUT}"
    "(processing=LogAndContinueProcessingExceptionHandler())."
)
_UNTIMED = (
    "Fix the timestamp extractor and restart the application: it resumes with this record. No "
    "exception handler is called for errors of extractors."
)
_UNREAD = (
    "Set the serdes of the source to those that the topic was written with. "
    f"{_LEFT_OUT}(deserialization=LogAndContinueExceptionHandler())."
)
_UNWRITTEN = (
    "Set the serdes of the sink to serdes that fit the records that it gets. "
    f"{_LEFT_OUT}(production=LogAndContinueProductionExceptionHandler())."
)


def is_users(file: str) -> bool:
    """Return True if a file belongs to the user, not to this package, Python or the dependencies."""
    return not (file.startswith((_OURS, _LIBRARY)) or any(part in file for part in _THEIRS))


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """Iterate over the frames of an error's traceback, the innermost last."""
    return (trace.tb_frame for trace in _chain(error))


def _chain(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def shorten(error: BaseException) -> None:
    """Remove the frames that are not the user's, if the innermost frame is the user's."""
    chain = list(_chain(error))
    users = [trace for trace in chain if is_users(trace.tb_frame.f_code.co_filename)]
    if not users or users[-1] is not chain[-1]:
        return
    result: TracebackType | None = None
    for entry in reversed(users):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = result


def note_record(
    error: Exception,
    metadata: RecordMetadata | None,
    node: str | None,
    advice: str | None = None,
) -> None:
    """Add a note with the record and node of an error, and what to do; once for each error.

    `advice` replaces the hint for the error's type. Without a record the error is from a punctuator
    or from `init`.
    """
    if any(note.startswith(_RAISED) for note in getattr(error, "__notes__", ())):
        return
    node_text = "" if node is None else f", in {node}"
    if metadata is None:
        error.add_note(f"{_RAISED}outside of a record{node_text}. {_FIX}.")
        return
    record = f"topic {metadata.topic}, partition {metadata.partition}, offset {metadata.offset}"
    advice_text = _advice(error) if advice is None else advice
    error.add_note(f"{_RAISED}at the record of {record}{node_text}. {advice_text}".rstrip())


def note_source_record(error: Exception, metadata: RecordMetadata, source: str) -> None:
    """Add a note to an error of a source: of its serdes, or of its timestamp extractor."""
    note_record(error, metadata, source, None if isinstance(error, OttlaError) else _UNTIMED)


def _advice(error: Exception) -> str:
    if isinstance(error, DeserializationError):
        return _UNREAD
    if isinstance(error, SerializationError):
        return _UNWRITTEN
    # Other errors of this package already have a hint.
    return "" if isinstance(error, OttlaError) else _UNPROCESSED


def described(error: BaseException) -> str:
    """Return the text of an error for a terminal: type, message, notes and the user's frames."""
    result = traceback.TracebackException.from_exception(error)
    result.stack = traceback.StackSummary.from_list(
        [frame for frame in result.stack if is_users(frame.filename)]
    )
    result.__cause__ = result.__context__ = None
    frames = "".join(result.stack.format()).rstrip()
    message = "".join(result.format_exception_only()).strip()
    return f"{message}\n{frames}" if frames else message


class UsersErrors:
    """A context for user code whose own errors no caller handles: they are raised as a type of
    Ottla.
    """

    def __init__(self, subject: str, kind: type[OttlaError]) -> None:
        self._subject = subject
        self._kind = kind

    def __enter__(self) -> None:
        """Remember the current frame."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the error as the given type."""
        if isinstance(error, Exception):
            raise self._kind(f"{self._subject}\n{described(error)}") from error


def logged_errors(subject: str) -> LoggedErrors:
    """Return a context for user code that nothing depends on; `subject` begins the log line."""

    def report(error: Exception) -> None:
        _log.error("%s\n%s", subject, described(error))

    return LoggedErrors(report)

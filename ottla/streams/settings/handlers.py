"""Exception handlers for records that cannot be read, processed or written (KIP-161, 399, 1033,
1034).

Each handler decides whether the application skips the record or fails, and may return records to
write instead. If a dead-letter topic is set, the handlers here write the source record to it, with
Kafka's headers about the error.

Not done: `RETRY` of a production handler (the client retries by itself), `taskId` of an error's
context.
"""

import enum
import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.model.records import Header, Record

_log = logging.getLogger(__name__)

_HEADERS = "__streams.errors."


class ErrorHandlerContext(NamedTuple):
    """The context of an error: the source record, and the node that failed.

    In a punctuator there is no record: `topic` is None, `partition` and `offset` are -1.
    """

    topic: str | None
    partition: int
    offset: int
    headers: Sequence[Header]
    processor_node_id: str
    timestamp: int
    source_raw_key: bytes | None
    source_raw_value: bytes | None
    dead_letter_queue_topic_name: str | None

    def dead_letters(self, error: BaseException) -> tuple[ProducedRecord, ...]:
        """Return the record for the dead-letter topic: the source record with headers about the
        error.
        """
        topic = self.dead_letter_queue_topic_name
        if topic is None:
            return ()
        details = {
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "stacktrace": "".join(traceback.format_exception(error)),
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        headers = [
            (_HEADERS + name, None if text is None else text.encode())
            for name, text in details.items()
        ]
        key, value = self.source_raw_key, self.source_raw_value
        record = ProducedRecord(topic, key, value, self.timestamp, (*self.headers, *headers))
        return (record,)

    def __str__(self) -> str:
        position = f"{self.topic}-{self.partition} at offset {self.offset}"
        read = "no record" if self.topic is None else f"the record of {position}"
        return f"{read} in {self.processor_node_id}"


class Result(enum.Enum):
    """The decision of a handler."""

    RESUME = "skip the record and continue"
    FAIL = "fail the application"


@dataclass(frozen=True)
class Response:
    """The decision of a handler, and the records to write to the dead-letter topic."""

    result: Result
    dead_letter_queue_records: tuple[ProducedRecord, ...] = ()

    @classmethod
    def resume(cls, dead_letter_queue_records: Sequence[ProducedRecord] = ()) -> "Response":
        """Skip the record and continue."""
        return cls(Result.RESUME, tuple(dead_letter_queue_records))

    @classmethod
    def fail(cls, dead_letter_queue_records: Sequence[ProducedRecord] = ()) -> "Response":
        """Fail the application with the error."""
        return cls(Result.FAIL, tuple(dead_letter_queue_records))


class SerializationOrigin(enum.Enum):
    """The part of a record that could not be serialized."""

    KEY = "key"
    VALUE = "value"


class DeserializationExceptionHandler(Protocol):
    """Handles records that the serdes of a source cannot deserialize."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Return whether to skip the record or to fail."""


class ProcessingExceptionHandler(Protocol):
    """Handles errors of processors and functions of the DSL; `record` is None in a punctuator."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Return whether to skip the record or to fail."""


class ProductionExceptionHandler(Protocol):
    """Handles records that cannot be written to their topic."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Return whether to skip a record that the broker rejects or to fail.

        A broker rejects a record if it is too large or the application is not authorized for the
        topic. The local engine passes the source record. If brokers reject a record of a
        transaction, the transaction is aborted, the tasks go back to their last commit, and the
        handler is called where the record is written again. On Spark records are written in another
        place than they are read: `context` has no source, and its raw key and value, and therefore
        the dead letter, come from the rejected record.
        """

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> Response:
        """Return whether to skip a record that the serdes of a sink cannot serialize or to fail."""


@dataclass(frozen=True)
class LogAndFailExceptionHandler:
    """Fails the application if a record cannot be deserialized; the default."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Log the error and fail."""
        _log.error("a record cannot be read: %s: %s", context, error)
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueExceptionHandler:
    """Skips records that cannot be deserialized."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Log the error and skip the record."""
        _log.warning("skipping a record that cannot be read: %s: %s", context, error)
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndFailProcessingExceptionHandler:
    """Fails the application if a processor raises; the default."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Log the error and fail."""
        _log.error("processing failed: %s: %r", context, error)
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueProcessingExceptionHandler:
    """Skips records that could not be processed."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Log the error and skip the record."""
        _log.warning("skipping a record that could not be processed: %s: %r", context, error)
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class DefaultProductionExceptionHandler:
    """Fails the application if a record cannot be written; the default."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Log the error and fail."""
        _log.error("the broker rejected a record for %s: %s: %s", record.topic, context, error)
        return Response.fail(context.dead_letters(error))

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> Response:
        """Log the error and fail."""
        _log.error(
            "the %s of a record cannot be written to %s: %s: %s",
            origin.value,
            topic,
            context,
            error,
        )
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueProductionExceptionHandler:
    """Skips records that cannot be written."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Log the error and skip the record."""
        _log.warning(
            "skipping a record for %s that the broker rejected: %s: %s",
            record.topic,
            context,
            error,
        )
        return Response.resume(context.dead_letters(error))

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> Response:
        """Log the error and skip the record."""
        _log.warning(
            "skipping a record whose %s cannot be written to %s: %s: %s",
            origin.value,
            topic,
            context,
            error,
        )
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class ExceptionHandlers:
    """The handlers of an application, and its dead-letter topic.

    Kafka's `deserialization.exception.handler`, `processing.exception.handler`,
    `production.exception.handler` and `errors.dead.letter.queue.topic.name`.
    """

    deserialization: DeserializationExceptionHandler = LogAndFailExceptionHandler()
    processing: ProcessingExceptionHandler = LogAndFailProcessingExceptionHandler()
    production: ProductionExceptionHandler = DefaultProductionExceptionHandler()
    dead_letter_queue_topic_name: str | None = None

    @property
    def sees_processing(self) -> bool:
        """True if processing errors need to be handled: a custom handler or a dead-letter topic is
        set.
        """
        default = isinstance(self.processing, LogAndFailProcessingExceptionHandler)
        return not default or self.dead_letter_queue_topic_name is not None

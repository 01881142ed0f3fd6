"""Exception handlers: what happens to a record that cannot be read, processed or written (KIP-161, 399, 1033, 1034).

Each handler says whether the application goes on without the record or fails, and may write records in its
place. With a dead-letter topic the handlers here put the source record there, with Kafka's headers about the error.

Not done: `RETRY` of a production handler (the client retries by itself), `taskId` of an error's context.
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
    """Where an error came up: the source record, and the node that could not go on.

    In a punctuator there is no record: topic None, partition and offset -1.
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
        """Return the record for the dead-letter topic: the source record with headers about the error."""
        topic = self.dead_letter_queue_topic_name
        if topic is None:
            return ()
        told = {
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "stacktrace": "".join(traceback.format_exception(error)),
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        headers = [
            (_HEADERS + name, None if text is None else text.encode())
            for name, text in told.items()
        ]
        key, value = self.source_raw_key, self.source_raw_value
        record = ProducedRecord(topic, key, value, self.timestamp, (*self.headers, *headers))
        return (record,)

    def __str__(self) -> str:
        place = f"{self.topic}-{self.partition} at offset {self.offset}"
        read = "no record" if self.topic is None else f"the record of {place}"
        return f"{read} in {self.processor_node_id}"


class Result(enum.Enum):
    """What happens after an error."""

    RESUME = "go on without the record"
    FAIL = "end the application"


@dataclass(frozen=True)
class Response:
    """What a handler decided, and the records that it wants written."""

    result: Result
    dead_letter_queue_records: tuple[ProducedRecord, ...] = ()

    @classmethod
    def resume(cls, dead_letter_queue_records: Sequence[ProducedRecord] = ()) -> "Response":
        """Go on without the record."""
        return cls(Result.RESUME, tuple(dead_letter_queue_records))

    @classmethod
    def fail(cls, dead_letter_queue_records: Sequence[ProducedRecord] = ()) -> "Response":
        """End the application with the error."""
        return cls(Result.FAIL, tuple(dead_letter_queue_records))


class SerializationOrigin(enum.Enum):
    """Which half of a record could not be written."""

    KEY = "key"
    VALUE = "value"


class DeserializationExceptionHandler(Protocol):
    """Asked when a record of a topic is not what the serdes of its source read."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Decide."""


class ProcessingExceptionHandler(Protocol):
    """Asked when a processor, or a function of the DSL, raises; `record` is None in a punctuator."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Decide."""


class ProductionExceptionHandler(Protocol):
    """Asked when a record cannot be written; `topic` is where it should have gone."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Decide about a record that the broker refuses, as it is too large, or its topic is not for us.

        On Spark records are written far from where they were read: there `context` knows no source, its raw key and
        value, and so the dead letter, are those of the record that is refused.
        """

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> Response:
        """Decide about a record that a sink's serde does not take."""


@dataclass(frozen=True)
class LogAndFailExceptionHandler:
    """Ends the application at a record that cannot be read; the default."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Fail."""
        _log.error("a record cannot be read: %s: %s", context, error)
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueExceptionHandler:
    """Leaves out records that cannot be read."""

    def handle_error(
        self, context: ErrorHandlerContext, record: TopicRecord, error: Exception
    ) -> Response:
        """Go on."""
        _log.warning("a record that cannot be read is left out: %s: %s", context, error)
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndFailProcessingExceptionHandler:
    """Ends the application at an error of a processor; the default."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Fail."""
        _log.error("processing failed: %s: %r", context, error)
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueProcessingExceptionHandler:
    """Leaves out what a processor could not process."""

    def handle_error(
        self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
    ) -> Response:
        """Go on."""
        _log.warning("what could not be processed is left out: %s: %r", context, error)
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class DefaultProductionExceptionHandler:
    """Ends the application at a record that cannot be written."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Fail."""
        _log.error("a record for %s is refused: %s: %s", record.topic, context, error)
        return Response.fail(context.dead_letters(error))

    def handle_serialization_error(
        self,
        context: ErrorHandlerContext,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> Response:
        """Fail."""
        _log.error("the %s for %s cannot be written: %s: %s", origin.value, topic, context, error)
        return Response.fail(context.dead_letters(error))


@dataclass(frozen=True)
class LogAndContinueProductionExceptionHandler:
    """Leaves out records that cannot be written."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducedRecord, error: Exception
    ) -> Response:
        """Go on."""
        _log.warning(
            "a record for %s is left out, it is refused: %s: %s", record.topic, context, error
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
        """Go on."""
        _log.warning(
            "the %s for %s is left out, it cannot be written: %s: %s",
            origin.value,
            topic,
            context,
            error,
        )
        return Response.resume(context.dead_letters(error))


@dataclass(frozen=True)
class ExceptionHandlers:
    """The handlers of an application, and its dead-letter topic.

    Kafka's `deserialization.exception.handler`, `processing.exception.handler`, `production.exception.handler`
    and `errors.dead.letter.queue.topic.name`.
    """

    deserialization: DeserializationExceptionHandler = LogAndFailExceptionHandler()
    processing: ProcessingExceptionHandler = LogAndFailProcessingExceptionHandler()
    production: ProductionExceptionHandler = DefaultProductionExceptionHandler()
    dead_letter_queue_topic_name: str | None = None

    @property
    def sees_processing(self) -> bool:
        """Whether errors of processors are shown to anybody before they end the application."""
        default = isinstance(self.processing, LogAndFailProcessingExceptionHandler)
        return not default or self.dead_letter_queue_topic_name is not None

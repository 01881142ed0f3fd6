"""The edges of a task: sources deserialize records, sinks serialize them.

Errors are passed to the application's exception handlers. If a handler fails, the raised error
names the record and its topic.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ottla.base.errors import ApiError
from ottla.streams.model.errors import (
    DeserializationError,
    RecordsRefused,
    SerializationError,
    StateDamaged,
    StreamsError,
    TaskMigrated,
)
from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.model.records import NO_TIMESTAMP, Record, RecordMetadata
from ottla.streams.model.user_errors import note_record
from ottla.streams.processor.api import RecordContext, TimestampedRecord, TimestampExtractor
from ottla.streams.processor.timestamps import FailOnInvalidTimestamp, extracting
from ottla.streams.serdes import DefaultSerdes, Serde, changes, resolve
from ottla.streams.settings.handlers import (
    ErrorHandlerContext,
    ExceptionHandlers,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    Response,
    Result,
    SerializationOrigin,
)
from ottla.streams.task.dropped_records import DroppedRecords
from ottla.streams.topology.topology import Sink, Source, Topology

_log = logging.getLogger(__name__)
# The errors of serdes, which are functions of the user: as in Kafka, any error reaches the handler.
UNFIT = (Exception,)

# The maximum length of an invalid key or value in an error.
_SHOWN = 80
# The key selects the partition.
_ANY = (None,)

_Serdes = tuple[Serde[Any], Serde[Any]]
Deliver = Callable[[Record[Any, Any]], None]


class Dependencies(Protocol):
    """The parts of the task that its edges use."""

    metadata: RecordMetadata | None
    raw: TopicRecord | None
    dropped: DroppedRecords

    def topic_name(self, topic: str) -> str:
        """Return the full name of a topic; internal topics get the application's name."""

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic."""

    def write(self, record: ProducedRecord) -> None:
        """Write a record."""


class Failures:
    """Calls the exception handlers, and writes the records that they return."""

    def __init__(self, handlers: ExceptionHandlers, task: Dependencies) -> None:
        self._handlers = handlers
        self._task = task
        self._decided: BaseException | None = None
        self.follows = False
        """True while another task reads the same records: its calls of the handlers count."""

    def _context(self, node: str) -> ErrorHandlerContext:
        metadata, raw = self._task.metadata, self._task.raw
        record = raw or TopicRecord(None, None, NO_TIMESTAMP)
        position = metadata or (None, -1, -1)
        return self._context_of(node, position, record)

    def _context_of(
        self, node: str, position: tuple[str | None, int, int], raw: TopicRecord
    ) -> ErrorHandlerContext:
        topic, partition, offset = position
        dead_letters = self._handlers.dead_letter_queue_topic_name
        read = raw.timestamp, raw.key, raw.value
        return ErrorHandlerContext(topic, partition, offset, raw.headers, node, *read, dead_letters)

    def _resumes(self, response: Response) -> bool:
        for letter in response.dead_letter_queue_records:
            self._task.write(letter)
        resumes = response.result is Result.RESUME
        if resumes:
            # The handler has logged it.
            self._task.dropped.count()
        return resumes

    def drop_undated(self, node: str, topic: str, raw: TopicRecord, timestamp: int) -> None:
        """Count and log a record that is dropped because of a negative extracted timestamp."""
        metadata = RecordMetadata(topic, raw.partition, raw.offset)
        facts: dict[str, object] = {"extractedTimestamp": timestamp}
        self._task.dropped.drop(node, "due to negative extracted timestamp", metadata, facts)

    def drop_unsent(self, node: str, topic: str) -> None:
        """Count and log a record that a partitioner sends to no partition."""
        reason = "as partitioner returned empty partitions"
        self._task.dropped.drop(node, reason, self._task.metadata, {"sinkTopic": topic})

    def skips_unreadable(self, node: str, topic: str, raw: TopicRecord, error: Exception) -> bool:
        """Return True if the handler skips a record that cannot be deserialized."""
        context = self._context_of(node, (topic, raw.partition, raw.offset), raw)
        handler = self._handlers.deserialization
        # The default needs no call to be known.
        if self.follows and not isinstance(handler, LogAndFailExceptionHandler):
            return _skipped(context, error)
        return self._resumes(handler.handle_error(context, raw, error))

    def skips_unwritable(
        self,
        node: str,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> bool:
        """Return True if the handler skips a record that cannot be serialized."""
        handler = self._handlers.production
        context = self._context(node)
        return self._resumes(
            handler.handle_serialization_error(context, topic, record, error, origin)
        )

    def skips_rejected(self, node: str, record: ProducedRecord, error: Exception) -> bool:
        """Return True if the handler skips a record that the broker rejects."""
        response = self._handlers.production.handle_error(self._context(node), record, error)
        if self._resumes(response):
            return True
        self._decided = error
        return False

    def reject(self, topology: Topology, record: ProducedRecord, error: Exception) -> None:
        """Pass a record that a broker has rejected to the handler. Raises the error if it fails."""
        sinks = [node for node in topology.nodes.values() if isinstance(node, Sink)]
        name = self._task.topic_name
        # The topic of some sinks depends on the record.
        fixed = {name(row.topic): row.name for row in sinks if isinstance(row.topic, str)}
        others = [row.name for row in sinks if not isinstance(row.topic, str)]
        node = fixed.get(record.topic) or next(iter(others), "")
        if not self.skips_rejected(node, record, error):
            raise error

    def _skips_failed(self, node: str, record: Record[Any, Any] | None, error: Exception) -> bool:
        if error is self._decided or isinstance(error, SerializationError):
            # The handler of a node below has decided.
            return False
        if isinstance(error, StateDamaged | TaskMigrated | RecordsRefused):
            # The task is restored, and the record is processed again.
            return False
        handler, context = self._handlers.processing, self._context(node)
        if self.follows and not isinstance(handler, LogAndFailProcessingExceptionHandler):
            return _skipped(context, error)
        if self._resumes(handler.handle_error(context, record, error)):
            return True
        self._decided = error
        return False

    def guard(self, node: str, deliver: Deliver) -> Deliver:
        """Wrap the function that delivers records to a processor, so that its errors reach the
        handler.
        """
        if not self._handlers.sees_processing:
            return deliver

        def guarded(record: Record[Any, Any]) -> None:
            try:
                deliver(record)
            except Exception as error:
                if self._skips_failed(node, record, error):
                    return
                raise

        return guarded

    def punctuate(self, node: str, callback: Callable[[int], Any], now: int) -> None:
        """Call a punctuator; its errors reach the handler."""
        try:
            callback(now)
        except Exception as error:
            if self._handlers.sees_processing and self._skips_failed(node, None, error):
                return
            note_record(error, None, node)
            raise


def _skipped(context: ErrorHandlerContext, error: Exception) -> bool:
    _log.info("the handler of another task decides on a record: %s: %r", context, error)
    return True


class Reader:
    """A source: deserializes records."""

    def __init__(
        self,
        source: Source,
        defaults: DefaultSerdes,
        failures: Failures,
        order: int,
        extractor: TimestampExtractor | None = None,
    ) -> None:
        self.order = order
        self.name = source.name
        extraction = extracting(source.timestamp_extractor or extractor)
        self._extraction = extraction
        self._extract = None if extraction is None else extraction.extract
        # The maximum timestamp of each partition of a topic.
        self._latest: dict[tuple[str, int], int] = {}
        self._failures = failures
        self._own_serdes = source.key, source.value
        value = resolve(source.value, defaults.value)
        self._serdes: _Serdes = (
            resolve(source.key, defaults.key),
            changes(value) if source.carries_changes else value,
        )
        self._read_key, self._read_value = (serde.deserialize for serde in self._serdes)

    def read(self, topic: str, raw: TopicRecord) -> Record[Any, Any] | None:
        """Return the record with its timestamp; None if it is dropped."""
        key_bytes, value_bytes, timestamp = raw.key, raw.value, raw.timestamp
        is_key = True
        try:
            key = None if key_bytes is None else self._read_key(key_bytes)
            is_key = False
            value = None if value_bytes is None else self._read_value(value_bytes)
        except UNFIT as error:
            if self._failures.skips_unreadable(self.name, topic, raw, error):
                return None
            raise DeserializationError(
                self._read_error(topic, raw, error, is_key=is_key)
            ) from error
        if self._extract is not None and self._extraction is not None:
            record = TimestampedRecord(
                key, value, timestamp, topic, raw.partition, raw.offset, raw.headers
            )
            latest = self._latest.get((topic, raw.partition), NO_TIMESTAMP)
            timestamp = self._extract(record, latest)
            if type(timestamp) is not int or timestamp < 0:
                timestamp = self._extraction.checked(timestamp, record)
            self._latest[topic, raw.partition] = max(latest, timestamp)
            if timestamp < 0:
                self._failures.drop_undated(self.name, topic, raw, timestamp)
                return None
        elif timestamp < 0:
            record = TimestampedRecord(
                key, value, timestamp, topic, raw.partition, raw.offset, raw.headers
            )
            FailOnInvalidTimestamp().extract(record, NO_TIMESTAMP)
        return Record(key, value, timestamp, raw.headers)

    def _read_error(self, topic: str, raw: TopicRecord, error: Exception, *, is_key: bool) -> str:
        part, index = "key" if is_key else "value", 0 if is_key else 1
        data = raw.key if is_key else raw.value
        sentence = (
            f"the {part} of the record of {topic}-{raw.partition} at offset {raw.offset} "
            f"cannot be read by {self._serdes[index]}: {error}; it is {shortened(data)}"
        )
        return sentence + default_serde_hint(
            self._own_serdes[index], self._serdes[index], "source", part
        )


def shortened(data: bytes | None) -> str:
    """Return the beginning of a key or value as text, for an error."""
    text = repr(data)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def default_serde_hint(own: Serde[Any] | None, used: Serde[Any], edge: str, part: str) -> str:
    """Return the hint for an error of the application's default serde; empty for other serdes."""
    if own is not None:
        return ""
    return f"; the {edge} has no serde for {part}s, so the default {used} was used: set {part}=…"


class Writer:
    """A sink: serializes records."""

    def __init__(
        self, sink: Sink, defaults: DefaultSerdes, failures: Failures, task: Dependencies
    ) -> None:
        self._task = task
        self._sink = sink
        self._failures = failures
        value = resolve(sink.value, defaults.value)
        self._serdes: _Serdes = (
            resolve(sink.key, defaults.key),
            changes(value) if sink.carries_changes else value,
        )
        self._of: dict[str, _Serdes] = {}
        # Most sinks always write to the same topic.
        self._topic = task.topic_name(sink.topic) if isinstance(sink.topic, str) else None

    @property
    def name(self) -> str:
        """The name of the sink."""
        return self._sink.name

    def refuse(
        self, topic: str, record: Record[Any, Any], error: Exception, origin: SerializationOrigin
    ) -> None:
        """Pass a record that cannot be serialized to the handlers. Raises SerializationError if
        they fail.
        """
        if self._failures.skips_unwritable(self._sink.name, topic, record, error, origin):
            return
        index = 0 if origin is SerializationOrigin.KEY else 1
        serde = (self._of.get(topic) or self._bound(topic))[index]
        own = (self._sink.key, self._sink.value)[index]
        part = record.key if origin is SerializationOrigin.KEY else record.value
        raise SerializationError(
            f"the {origin.value} of a record for {topic} cannot be written by {serde}: {error}; its type is "
            f"{type(part).__name__}" + default_serde_hint(own, serde, "sink", origin.value)
        ) from error

    def _bound(self, topic: str) -> _Serdes:
        key, value = self._serdes
        result = key.of(topic, is_key=True), value.of(topic, is_key=False)
        self._of[topic] = result
        return result

    def write(self, record: Record[Any, Any]) -> None:
        """Write a record. Raises SerializationError if the topic's serdes cannot serialize it."""
        sink = self._sink
        topic = self._topic
        if topic is None:
            assert not isinstance(sink.topic, str)
            named = sink.topic(record.key, record.value, self._context(record))
            topic = self._task.topic_name(named)
        partitions: Iterable[int | None] = _ANY
        if sink.partitioner is not None:
            count = self._task.partition_count(topic)
            chosen = sink.partitioner(topic, record.key, record.value, count)
            partitions = (chosen,) if chosen is None or isinstance(chosen, int) else tuple(chosen)
            if not partitions:
                self._failures.drop_unsent(self.name, topic)
                return
        if record.timestamp < 0:
            raise StreamsError(f"a record for {topic} has no timestamp: forward it with one")
        origin = SerializationOrigin.KEY
        key_serde, value_serde = self._of.get(topic) or self._bound(topic)
        try:
            key = None if record.key is None else key_serde.serialize(record.key)
            origin = SerializationOrigin.VALUE
            value = None if record.value is None else value_serde.serialize(record.value)
        except UNFIT as error:
            self.refuse(topic, record, error, origin)
            return
        for partition in partitions:
            self._write_produced(
                ProducedRecord(topic, key, value, record.timestamp, record.headers, partition)
            )

    def _context(self, record: Record[Any, Any]) -> RecordContext:
        topic, partition, offset = self._task.metadata or (None, -1, -1)
        raw = self._task.raw
        key, value = (None, None) if raw is None else (raw.key, raw.value)
        origin = record.timestamp, record.headers, key, value
        return RecordContext(topic, partition, offset, *origin)

    def _write_produced(self, produced: ProducedRecord) -> None:
        try:
            self._task.write(produced)
        except ApiError as error:
            if not self._failures.skips_rejected(self._sink.name, produced, error):
                raise

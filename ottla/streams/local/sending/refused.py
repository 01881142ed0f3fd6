"""Records that brokers refuse after they were sent, for the production exception handler.

librdkafka reports a refusal when other records have followed. With exactly_once_v2 the transaction
can then only be aborted: the refusal is remembered, the tasks go back to their last commit, and the
record is refused again where it is written, before it is sent. There the handler decides, with the
complete context, and its dead letters are in the transaction that is committed. With at_least_once
the handler decides when the refusal is reported.

A broker refuses batches, and librdkafka does not split a batch that is too large, as Java's
producer does. Therefore the size of a record is compared with max.message.bytes of its topic, and
records of such a topic are sent in batches that fit.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client import transport
from ottla.client.records import TopicPartition
from ottla.client.sender import TOPIC_REFUSALS
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.model.records import RecordMetadata
from ottla.streams.task.caching import CurrentRecord
from ottla.wire.records.records import Record, encode_batch

# How long a topic that refuses all records, and the maximum size of a topic, are remembered.
_KNOWN_S = 30.0
# Later records of a batch have larger numbers than a record that is alone in it.
_VARINTS_BYTES = 16
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# The number of refusals of results of one input record after which the application fails.
_REPEATED_MAX = 50
_OF_RECORDS = frozenset(
    {
        *TOPIC_REFUSALS,
        *_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
    }
)


class SentRecord(NamedTuple):
    """A record, with the input record that its task processed when it wrote it."""

    record: ProducedRecord
    current: CurrentRecord
    task: Any
    """The running task."""


class RefusedRecord(NamedTuple):
    """A record that a broker has refused, or that was in a batch with one."""

    sent: SentRecord
    error: ApiError
    is_innocent: bool = False
    """True if the broker has named another record of the batch."""


_Content = tuple[TopicPartition | None, str, bytes | None, bytes | None]
FindLimit = Callable[[str], int]
"""A function that returns max.message.bytes of a topic."""


def refusal_of(error: Any, sent: SentRecord) -> RefusedRecord | None:
    """Return the refusal that a delivery report is about; None if the record is not at fault."""
    if error.code() == transport.OTHER_RECORD:
        return RefusedRecord(sent, ApiError(ErrorCode.INVALID_RECORD), is_innocent=True)
    cause = transport.unsent_error(error, sent.record.topic, sent.record.partition)
    if isinstance(cause, ApiError) and cause.code in _OF_RECORDS:
        return RefusedRecord(sent, cause)
    return None


class RefusedRecords:
    """The refusals that one worker remembers. For one thread."""

    def __init__(
        self,
        find_limit: FindLimit,
        dead_letter_topic: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dead_letter_topic = dead_letter_topic
        """The topic whose refusals are errors, as in Kafka: its records come from the handlers."""
        self._find_limit, self._clock = find_limit, clock
        # Topics that refuse all records, with the end of this knowledge.
        self._topics: dict[str, tuple[ApiError, float]] = {}
        self._limits: dict[str, tuple[int, float]] = {}
        self._contents: dict[_Content, tuple[int, ApiError]] = {}
        self._repeated: dict[TopicPartition | None, tuple[int, int]] = {}
        # The size of the records of a topic that may be in one batch now.
        self._unsent_bytes: dict[str, int] = {}

    def note(self, refused: Sequence[RefusedRecord]) -> list[RefusedRecord]:
        """Remember refusals; return those of records that are at fault.

        The others were in a batch with them, or the batch was too large. Raises the error if the
        brokers do not return the maximum size of a topic, or if records of the same input are
        refused again and again.
        """
        for topic in {row.sent.record.topic for row in refused if row.error.code in _TOO_LARGE}:
            if topic in self._limits:
                self._limits[topic] = self._limits[topic][0], self._clock()
        faults = [row for row in refused if self._is_at_fault(row)]
        inputs = {_position(row.sent.current[0]): row.error for row in refused}
        for (key, offset), error in inputs.items():
            last, count = self._repeated.get(key, (-1, 0))
            self._repeated[key] = offset, count + 1 if last == offset else 1
            if self._repeated[key][1] > _REPEATED_MAX:
                raise error
        return faults

    def _is_at_fault(self, refused: RefusedRecord) -> bool:
        error, record = refused.error, refused.sent.record
        if refused.is_innocent:
            return False
        if error.code in TOPIC_REFUSALS:
            self._topics[record.topic] = error, self._clock() + _KNOWN_S
        elif error.code in _TOO_LARGE:
            return _size_of(record) > self._limit(record.topic, error)
        else:
            key, offset = _position(refused.sent.current[0])
            self._contents[key, record.topic, record.key, record.value] = offset, error
        return True

    def check(self, record: ProducedRecord, metadata: RecordMetadata | None) -> None:
        """Raise the error of a record that the broker would refuse again."""
        if self._topics and record.topic in self._topics:
            error, end = self._topics[record.topic]
            if self._clock() < end:
                raise error
            del self._topics[record.topic]
        if self._limits and record.topic in self._limits:
            limit, size = self._limit(record.topic), _size_of(record)
            if size > limit:
                raise ApiError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a record for {record.topic} has {size} bytes, and max.message.bytes of the "
                    f"topic is {limit}",
                )
        if self._contents:
            key, offset = _position(metadata)
            known = self._contents.get((key, record.topic, record.key, record.value))
            if known is not None and known[0] == offset:
                raise known[1]

    def begins_batch(self, record: ProducedRecord) -> bool:
        """Return True if the records before this one must be sent first, so that batches fit."""
        if record.topic not in self._limits:
            return False
        size = _size_of(record)
        total = self._unsent_bytes.get(record.topic, 0) + size + _VARINTS_BYTES
        is_full = total > self._limits[record.topic][0] and total > size + _VARINTS_BYTES
        self._unsent_bytes[record.topic] = size if is_full else total
        return is_full

    def note_sent(self) -> None:
        """Note that no record waits for its batch any more."""
        self._unsent_bytes.clear()

    def forget(self, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Forget the refusals of input records before these committed offsets."""
        if not (self._contents or self._repeated):
            return
        ends = {key: offset for key, (offset, _) in offsets.items()}
        self._contents = {
            content: row
            for content, row in self._contents.items()
            if content[0] is not None and row[0] >= ends.get(content[0], 0)
        }
        self._repeated = {
            key: row
            for key, row in self._repeated.items()
            if key is not None and row[0] >= ends.get(key, 0)
        }

    def _limit(self, topic: str, cause: ApiError | None = None) -> int:
        known = self._limits.get(topic)
        if known is not None and self._clock() < known[1]:
            return known[0]
        try:
            limit = self._find_limit(topic)
        except OttlaError as error:
            if known is None:
                assert cause is not None
                cause.add_note(
                    f"The production exception handler was not called, because max.message.bytes "
                    f"of {topic} is not known: {error}"
                )
                raise cause from error
            limit = known[0]
        self._limits[topic] = limit, self._clock() + _KNOWN_S
        return limit


def _position(metadata: RecordMetadata | None) -> tuple[TopicPartition | None, int]:
    """Return the partition and the offset of an input record; a punctuator has none."""
    if metadata is None:
        return None, -1
    return TopicPartition(metadata.topic, metadata.partition), metadata.offset


def _size_of(record: ProducedRecord) -> int:
    """Return the size of a batch with only this record."""
    entry = Record(record.key, record.value, tuple(record.headers), max(record.timestamp, 0))
    return len(encode_batch([entry]))

"""Timestamp extractors: Kafka's classes, and the calls of user-defined ones.

An extractor is a function of a `TimestampedRecord`, or of the record and the partition time: the
largest timestamp of the partition so far, in ms; -1 before the first. It can also be one of the
classes in this module or an instance, or a Column of key and value.

A function must return a valid timestamp: a result that is negative or not an integer raises
StreamsError. Only objects with Kafka's method `extract` may return a negative timestamp: the task
then drops the record, counts it and logs it.

Not done: on Spark the partition time is reset with each micro-batch.
"""

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from ottla.streams.expressions.arity import evaluated, refuse_async, takes_two
from ottla.streams.expressions.columns import Evaluated, OfSpark
from ottla.streams.model.errors import StreamsError
from ottla.streams.processor.api import TimestampedRecord

_REMEDY = (
    "use UsePartitionTimeOnInvalidTimestamp or WallclockTimestampExtractor for another time, or "
    "LogAndSkipOnInvalidTimestamp to skip such records"
)


class OfColumn:
    """An extractor that evaluates an expression of key and value to a timestamp in ms."""

    def __init__(self, expression: Evaluated | OfSpark) -> None:
        self._expression = expression

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the expression's value."""
        result: int = self._expression(record.key, record.value)
        return result


def extractor_of(extractor: Any) -> Any:
    """Return a function for an extractor that is a Column; return any other extractor, and None,
    unchanged.
    """
    refuse_async(extractor, "a timestamp extractor")
    expression = evaluated(extractor)
    return extractor if expression is None else OfColumn(expression)


@dataclass(frozen=True)
class Extraction:
    """An extractor as a function of the record and the partition time, with its name for errors."""

    extract: Callable[[TimestampedRecord, int], Any]
    name: str
    may_drop: bool
    """True if a negative timestamp drops the record; otherwise it is an error."""

    def checked(self, extracted: Any, record: TimestampedRecord) -> int:
        """Return the extractor's result, negative to drop the record; StreamsError if it is not
        valid.

        A non-negative int needs no check.
        """
        if type(extracted) is not int:
            extracted = self._whole(extracted, record)
        if extracted < 0 and not self.may_drop:
            raise StreamsError(
                f"the timestamp extractor {self.name!r} returned the negative timestamp '{extracted}' for "
                f"{_place(record)}: a timestamp is in milliseconds since 1970; fix the extractor, or {_REMEDY}"
            )
        time: int = extracted
        return time

    def _whole(self, extracted: Any, record: TimestampedRecord) -> int:
        # Integers of other libraries, such as numpy's, have __index__; so does bool, which is not a
        # timestamp.
        if hasattr(extracted, "__index__") and not isinstance(extracted, bool):
            return operator.index(extracted)
        raise StreamsError(
            f"the timestamp extractor {self.name!r} returned {extracted!r}, of type {type(extracted).__name__}, for "
            f"{_place(record)}: a timestamp is an integer of milliseconds since 1970; {_remedy_for(extracted)}"
        )


def _remedy_for(extracted: Any) -> str:
    if extracted is None:
        return "return record.timestamp for the record's own timestamp"
    if hasattr(extracted, "timestamp"):
        return "return int(value.timestamp() * 1000)"
    if isinstance(extracted, date):
        return "convert it to a datetime and return int(value.timestamp() * 1000)"
    if isinstance(extracted, float):
        return "return int(value) if it is in milliseconds, int(value * 1000) if it is in seconds"
    if isinstance(extracted, str | bytes):
        return "parse it, for example with int(value) or datetime.fromisoformat(value)"
    return "return an int"


def _place(record: TimestampedRecord) -> str:
    return f"the record of {record.topic}-{record.partition} at offset {record.offset}"


def extracting(extractor: Any) -> Extraction | None:
    """Return an object that calls an extractor for each record; None if the extractor is None."""
    instance = extractor() if isinstance(extractor, type) else extractor_of(extractor)
    if instance is None:
        return None
    may_drop = callable(getattr(instance, "extract", None))
    called = instance if callable(instance) or not may_drop else instance.extract
    plain = "Column" if isinstance(instance, OfColumn) else type(instance).__name__
    name = getattr(instance, "__name__", plain)
    if takes_two(called, "a timestamp extractor"):
        return Extraction(called, name, may_drop)
    return Extraction(lambda record, _partition_time: called(record), name, may_drop)


class ExtractRecordMetadataTimestamp:
    """An extractor of the record's own timestamp; subclasses decide what an invalid one means."""

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the result of `extract`."""
        return self.extract(record, partition_time)

    def extract(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the record's timestamp."""
        if record.timestamp < 0:
            return self.on_invalid_timestamp(record, record.timestamp, partition_time)
        return record.timestamp

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the timestamp to use for a record without a valid one; a negative one drops the
        record.
        """
        raise TypeError(f"{type(self).__name__} does not define on_invalid_timestamp")


class FailOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """An extractor that stops the application at a record without a valid timestamp (the default)."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Raise StreamsError."""
        raise StreamsError(
            f"{_place(record)} has no valid timestamp ('{record_timestamp}'): give the source a "
            f"timestamp extractor, or {_REMEDY}"
        )


class LogAndSkipOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """An extractor that drops records without a valid timestamp; the task counts and logs them."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the invalid timestamp."""
        return record_timestamp


class UsePartitionTimeOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """An extractor that replaces invalid timestamps by the largest one of the partition so far."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the partition time; StreamsError if the partition has no time yet."""
        if partition_time < 0:
            raise StreamsError(
                f"{_place(record)} has no valid timestamp ('{record_timestamp}'), and no record before it "
                "in its partition has one: give the source another timestamp extractor"
            )
        return partition_time


class WallclockTimestampExtractor:
    """An extractor that returns the time at which the record is read, also in a test driver."""

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the result of `extract`."""
        return self.extract(record, partition_time)

    def extract(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the current time in ms."""
        return time.time_ns() // 1_000_000

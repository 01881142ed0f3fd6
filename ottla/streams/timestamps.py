"""Where the time of a record comes from: Kafka's timestamp extractors, and how users' own are asked.

An extractor is a function of a `TimestampedRecord`, or of that and the partition's time: the largest one that its
partition had so far, in ms, -1 before the first. A class or an object of those here does as well, and a Column of key and value.

Not done: on Spark the partition's time begins anew with each micro-batch.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from ottla.streams.arity import evaluated, takes_two
from ottla.streams.columns import Evaluated, OfSpark
from ottla.streams.errors import StreamsError
from ottla.streams.processor import TimestampedRecord

_log = logging.getLogger(__name__)


class OfColumn:
    """Takes the time, in ms, from an expression of key and value."""

    def __init__(self, expression: Evaluated | OfSpark) -> None:
        self._expression = expression

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the expression's value; StreamsError for one that is no whole number."""
        found = self._expression(record.key, record.value)
        if not isinstance(found, int) or isinstance(found, bool):
            raise StreamsError(f"{found!r} is no time: an extractor gives whole milliseconds")
        return found


def extractor_of(extractor: Any) -> Any:
    """Return an extractor that is a Column as a function of the record; any other one, and None, as it is."""
    expression = evaluated(extractor)
    return extractor if expression is None else OfColumn(expression)


def extracting(extractor: Any) -> Callable[[TimestampedRecord, int], int] | None:
    """Return an extractor as a function of the record and its partition's time; None stays None."""
    made = extractor() if isinstance(extractor, type) else extractor_of(extractor)
    if made is None or takes_two(made, "a timestamp extractor"):
        return made  # type: ignore[no-any-return]
    return lambda record, _partition_time: made(record)


class ExtractRecordMetadataTimestamp:
    """Takes the time that the record has on its topic; subclasses say what an invalid one means."""

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return what `extract` does."""
        return self.extract(record, partition_time)

    def extract(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the record's time."""
        if record.timestamp < 0:
            return self.on_invalid_timestamp(record, record.timestamp, partition_time)
        return record.timestamp

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the time of a record without a valid one; a negative one drops the record."""
        raise TypeError(f"{type(self).__name__} does not define on_invalid_timestamp")


class FailOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Ends the application at a record without a time; what happens where no extractor is given."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Raise StreamsError."""
        raise StreamsError(
            f"a record of {record.topic} has no time; give the source a timestamp extractor"
        )


class LogAndSkipOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Drops records without a time."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the invalid time."""
        place = f"{record.topic}-{record.partition} at offset {record.offset}"
        _log.warning("a record without a time is left out: %s", place)
        return record_timestamp


class UsePartitionTimeOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Gives records without a time the largest one that their partition had so far."""

    def on_invalid_timestamp(
        self, record: TimestampedRecord, record_timestamp: int, partition_time: int
    ) -> int:
        """Return the partition's time; StreamsError before the partition has any."""
        if partition_time < 0:
            raise StreamsError(
                f"the first record of {record.topic}-{record.partition} has no time, and there is none "
                "before it to take; give the source another timestamp extractor"
            )
        return partition_time


class WallclockTimestampExtractor:
    """Gives each record the time at which it is read, also in a test driver."""

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return what `extract` does."""
        return self.extract(record, partition_time)

    def extract(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return now."""
        return time.time_ns() // 1_000_000

"""Writes the records of a copy, also if their timestamp is 0 or missing.

librdkafka would replace such a timestamp: the records are sent with requests of our own.

Not done: in transactions (`exactly_once`) they get the time of the copy, which the copy says.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.client.brokers import Brokers
from ottla.client.producer.futures import DeliveryFuture
from ottla.client.producer.producer import Producer
from ottla.client.raw.batches import append_batch
from ottla.client.raw.consumer import ConsumedRecord
from ottla.client.records import RecordMetadata
from ottla.wire.records.records import Record

Key = tuple[str, int]
# Below the default limit of a topic, with the heads of records.
_BATCH_BYTES = 700_000


class WrittenRecord(NamedTuple):
    """The position of a record that was written."""

    offset: int

    def result(self) -> "WrittenRecord":
        """Return itself, as a future of the producer does when it is complete."""
        return self


def send_copy(
    producer: Producer,
    target: str,
    record: ConsumedRecord,
    report: Callable[[RecordMetadata | None, Exception | None], None],
) -> DeliveryFuture:
    """Send a record to the same partition of its target; a timestamp of 0 becomes the current time."""
    return producer.send(
        target,
        record.value,
        key=record.key,
        headers=list(record.headers) or None,
        partition=record.partition,
        timestamp=record.timestamp if record.timestamp > 0 else None,
        on_delivery=report,
    )


def write_untimed(
    target: Brokers, topics: dict[str, str], records: Sequence[ConsumedRecord]
) -> dict[Key, WrittenRecord]:
    """Write records to the same partitions of their targets; return the last position in each
    partition, by the source's topic.
    """
    by_partition: dict[Key, list[ConsumedRecord]] = defaultdict(list)
    for record in records:
        by_partition[record.topic, record.partition].append(record)
    written: dict[Key, WrittenRecord] = {}
    for key, rows in by_partition.items():
        for batch in _batches(rows):
            plain = [Record(row.key, row.value, row.headers, row.timestamp) for row in batch]
            first = append_batch(target, topics[key[0]], key[1], plain)
            written[key] = WrittenRecord(first + len(batch) - 1)
    return written


def _batches(records: Sequence[ConsumedRecord]) -> list[list[ConsumedRecord]]:
    batches: list[list[ConsumedRecord]] = [[]]
    size = 0
    for record in records:
        record_size = len(record.key or b"") + len(record.value or b"")
        record_size += sum(len(name) + len(value or b"") for name, value in record.headers)
        if batches[-1] and size + record_size > _BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(record)
        size += record_size
    return batches

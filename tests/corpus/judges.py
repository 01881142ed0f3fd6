"""Plain consumers that we did not write: librdkafka by confluent-kafka, and kafka-python.

What they read is the result that every reader is compared with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import confluent_kafka
import kafka

_POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A record as a consumer reads it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_with_librdkafka(
    bootstrap: str, topic: str, partitions: Iterable[int] = (0,), *, committed: bool = True
) -> list[Reading]:
    """Return the records of partitions, in order of partition and offset."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "fetch.wait.max.ms": 10,
        "fetch.message.max.bytes": 32 << 20,
        "fetch.max.bytes": 64 << 20,
        "receive.message.max.bytes": 128 << 20,
    }
    consumer = confluent_kafka.Consumer(settings)
    left = set(partitions)
    rows: list[Reading] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in sorted(left)])
        while left:
            message = consumer.poll(_POLL_S)
            assert message is not None, f"{topic}: no record and no end within {_POLL_S} s"
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                left.discard(message.partition())
                continue
            rows.append(_of_librdkafka(message))
    finally:
        consumer.close()
    return sorted(rows, key=lambda row: (row.partition, row.offset))


def _of_librdkafka(message: confluent_kafka.Message) -> Reading:
    kind, timestamp = message.timestamp()
    return Reading(
        message.partition(),
        message.offset(),
        timestamp if kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE else -1,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def read_with_kafka_python(
    bootstrap: str, topic: str, ends: Mapping[int, int], *, committed: bool = True
) -> list[Reading]:
    """Return the records of partitions before the given ends, in order of partition and offset."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        isolation_level="read_committed" if committed else "read_uncommitted",
        fetch_max_wait_ms=10,
        max_partition_fetch_bytes=32 << 20,
        fetch_max_bytes=64 << 20,
    )
    rows: list[Reading] = []
    try:
        places = [kafka.TopicPartition(topic, number) for number in sorted(ends)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        while any(consumer.position(place) < ends[place.partition] for place in places):
            for batch in consumer.poll(timeout_ms=1000).values():
                rows += [
                    Reading(
                        row.partition,
                        row.offset,
                        row.timestamp,
                        row.key,
                        row.value,
                        tuple(row.headers),
                    )
                    for row in batch
                ]
    finally:
        consumer.close()
    return sorted(rows, key=lambda row: (row.partition, row.offset))

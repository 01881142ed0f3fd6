"""Record batches of partitions as they are stored, fetched with our own codec in bounded pieces.

Not done: record formats before v2, which Apache Kafka 4 no longer writes.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.client.brokers import Brokers
from ottla.operations.survey.metadata import Key
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

# Later versions name topics by id.
_NAMES_VERSION = 12
FETCH_BYTES = 4 << 20
PARTITION_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one response in bytes and time; a first batch may exceed the bytes (KIP-74)."""

    max_bytes: int = FETCH_BYTES
    partition_bytes: int = PARTITION_BYTES
    wait_ms: int = 0
    is_committed: bool = False


DEFAULT_LIMITS = FetchLimits()


class Fetched(NamedTuple):
    """A partition in a response; `aborted` are (producer id, first offset) of aborted transactions."""

    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: Buffer
    aborted: tuple[tuple[int, int], ...]


def fetch(
    brokers: Brokers, node: int, offsets: Mapping[Key, int], limits: FetchLimits = DEFAULT_LIMITS
) -> dict[Key, Fetched]:
    """Return records of partitions from a leader; an error concerns only its partition."""
    by_topic: dict[str, list[FetchPartition]] = defaultdict(list)
    for (topic, number), offset in offsets.items():
        row = FetchPartition(
            partition=number, fetch_offset=offset, partition_max_bytes=limits.partition_bytes
        )
        by_topic[topic].append(row)
    request = FetchRequest(
        max_wait_ms=limits.wait_ms,
        min_bytes=1 if limits.wait_ms else 0,
        max_bytes=limits.max_bytes,
        isolation_level=int(limits.is_committed),
        topics=[FetchTopic(topic=name, partitions=rows) for name, rows in by_topic.items()],
    )
    response = brokers.ask_node(node, request, FetchResponse, max_version=_NAMES_VERSION)
    results = {}
    for topic_row in response.responses:
        for item in topic_row.partitions:
            records = b"" if item.records is None else item.records
            assert not isinstance(records, list), "decoded records are one buffer"
            results[topic_row.topic, item.partition_index] = Fetched(
                item.error_code,
                item.high_watermark,
                item.last_stable_offset,
                item.log_start_offset,
                records,
                tuple(
                    (row.producer_id, row.first_offset) for row in item.aborted_transactions or ()
                ),
            )
    return results

"""Reads the batches of one replica as its broker stores them, from the leader or a follower
(KIP-392).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.records import batch

# From version 11 a follower responds; from version 13 topics have ids instead of names.
_VERSION_MAX = 12
_FETCH_BYTES = 1 << 20


class Batch(NamedTuple):
    """A batch in the bytes of a response."""

    data: memoryview
    base_offset: int
    last_offset: int

    @property
    def extent(self) -> tuple[int, int, int]:
        """The first and last offset, and the number of records."""
        return self.base_offset, self.last_offset, batch.parse_header(self.data).records_count

    @property
    def is_intact(self) -> bool:
        """True if the checksum is right."""
        return batch.is_crc_valid(self.data, 0, batch.parse_header(self.data))


@dataclass(frozen=True, slots=True)
class Content:
    """The response of a replica: its offsets, and whole batches from the requested offset on."""

    log_start_offset: int
    high_watermark: int
    batches: Sequence[Batch]


class Replica:
    """One replica of a partition."""

    def __init__(self, brokers: Brokers, broker: int, topic: str, partition: int) -> None:
        self.broker = broker
        self._brokers = brokers
        self._topic = topic
        self._partition = partition

    def read(self, offset: int) -> Content:
        """Return what the replica has from `offset` on, without waiting for records.

        Raises ApiError (OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, …) or a client error.
        """
        partition = FetchPartition(
            partition=self._partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(topic=self._topic, partitions=[partition])],
        )
        response = self._brokers.ask_node(
            self.broker, request, FetchResponse, max_version=_VERSION_MAX
        )
        _check(response.error_code)
        partition_data = response.responses[0].partitions[0]
        _check(partition_data.error_code)
        records = partition_data.records or b""
        assert not isinstance(records, list), "decoded records are one buffer"
        return Content(
            partition_data.log_start_offset, partition_data.high_watermark, split(records)
        )


def split(records: Buffer) -> list[Batch]:
    """Return the whole batches in a buffer; the last one may be cut off."""
    view, position, batches = memoryview(records), 0, []
    while position + batch.HEADER_SIZE <= len(view):
        size_bytes = batch.peek_size(view, position)
        if size_bytes < batch.HEADER_SIZE or position + size_bytes > len(view):
            break
        data = view[position : position + size_bytes]
        batches.append(Batch(data, batch.peek_base_offset(data), batch.peek_last_offset(data)))
        position += size_bytes
    return batches


def _check(code: int) -> None:
    if code:
        raise ApiError(ErrorCode(code))

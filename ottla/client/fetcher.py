"""Reads a range of offsets of a partition as Arrow batches: the bulk reader of `read_table` and
Spark.

It uses one blocking connection per leader. The next Fetch request is sent before the last response
is decoded, so that broker, network and decoding overlap in one thread. The fetcher follows a leader
that moves, waits while a partition has no leader, and distinguishes lost records
(OFFSET_OUT_OF_RANGE) from a cluster that is settling. It uses neither fetch sessions nor a group:
the caller chooses the offsets.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.offsets import EARLIEST, list_offsets
from ottla.client.bootstrap import Address
from ottla.client.brokers import PASSING, Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.client.pipelined import PipelinedConnection
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.records.columnar import AbortedTransaction, ColumnDecoder, measure

# Later versions name topics by id.
_FETCH_VERSION_MAX = 12
_READ_COMMITTED = 1
# A leader that is still starting returns these for partitions that it will load in a moment.
_PASSING = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
_PAUSE_S = 0.05
_PAUSE_S_MAX = 1.0


@dataclass(frozen=True)
class FetchSettings:
    """The settings of a fetcher.

    `timeout_s` is the longest time without any progress. If records were deleted before they could
    be read, reading fails unless `skips_lost` is set.
    """

    fetch_bytes: int = 4 << 20
    max_wait_ms: int = 500
    timeout_s: float = 60.0
    read_committed: bool = False
    skips_lost: bool = False


class _FetchedRecords(NamedTuple):
    """The records of one response; valid until the next one is received."""

    records: Buffer
    aborted: list[AbortedTransaction]
    next_offset: int


class Fetcher:
    """Fetches ranges one after the other over its own connections; for one thread."""

    def __init__(self, brokers: Brokers, settings: FetchSettings | None = None) -> None:
        self._brokers = brokers
        self._settings = settings or FetchSettings()
        self._connections: dict[Address, PipelinedConnection] = {}

    def __enter__(self) -> "Fetcher":
        """Return itself; connections are opened on first use."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    def fetch(self, decoder: ColumnDecoder, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the decoder's partition from offset `start` up to, but not including, `end`.

        `end` must not be above the high watermark (for read_committed, the last stable offset);
        otherwise the call waits for it up to the timeout. ApiError OFFSET_OUT_OF_RANGE if records
        have been deleted and `skips_lost` is not set.
        """
        position = start
        patience = _Patience(self._settings.timeout_s)
        while position < end:
            try:
                for fetched in self._receive_ranges(decoder, position, end):
                    aborted = fetched.aborted
                    yield from decoder.decode(fetched.records, position, end, aborted)
                    if fetched.next_offset > position:
                        patience.renew()
                    patience.check(f"{decoder.topic}-{decoder.partition} at offset {position}")
                    position = fetched.next_offset
            except (ApiError, NotReachable, TimedOut) as error:
                if isinstance(error, ApiError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    position = self._resume(decoder, position, end)
                elif isinstance(error, ApiError) and error.code not in _PASSING:
                    raise
                else:
                    patience.pause(error)

    def _receive_ranges(
        self, decoder: ColumnDecoder, position: int, end: int
    ) -> Iterator[_FetchedRecords]:
        connection = self._connect(decoder.topic, decoder.partition)
        try:
            connection.send(self._request(decoder, position), max_version=_FETCH_VERSION_MAX)
            while position < end:
                data = _only_partition(connection.receive(FetchResponse, timeout_s=self._wait_s()))
                records = memoryview(b"") if data.records is None else data.records
                assert not isinstance(records, list), "decoded records are one buffer"
                extent = measure(records)
                if extent is not None:
                    # A batch may start before the requested offset.
                    position = max(position, extent.next_offset)
                if position < end:
                    request = self._request(decoder, position)
                    connection.send(request, max_version=_FETCH_VERSION_MAX)
                aborted = [
                    AbortedTransaction(item.producer_id, item.first_offset)
                    for item in data.aborted_transactions or ()
                ]
                yield _FetchedRecords(records, aborted, position)
        finally:
            # An abandoned response would be taken for the response to the next range.
            if connection.in_flight:
                connection.close()

    def _wait_s(self) -> float:
        return self._settings.max_wait_ms / 1000 + min(self._settings.timeout_s, 30.0)

    def _request(self, decoder: ColumnDecoder, position: int) -> FetchRequest:
        settings = self._settings
        partition = FetchPartition(
            partition=decoder.partition,
            fetch_offset=position,
            partition_max_bytes=settings.fetch_bytes,
        )
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.fetch_bytes,
            isolation_level=_READ_COMMITTED if settings.read_committed else 0,
            topics=[FetchTopic(topic=decoder.topic, partitions=[partition])],
        )

    def _connect(self, topic: str, partition: int) -> PipelinedConnection:
        leaders = self._brokers.leaders([(topic, partition)])
        address = self._brokers.address(leaders[topic, partition])
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        timeout_s = min(self._settings.timeout_s, 30.0)
        opened = PipelinedConnection(
            address,
            client_id=self._brokers.client_id,
            timeout_s=timeout_s,
            security=self._brokers.security,
        )
        self._connections[address] = opened
        return opened

    def _resume(self, decoder: ColumnDecoder, position: int, end: int) -> int:
        """Return the offset to resume from after OFFSET_OUT_OF_RANGE."""
        key = decoder.topic, decoder.partition
        earliest = list_offsets(self._brokers, {key: EARLIEST})[key].offset
        if not self._settings.skips_lost:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{key[0]}-{key[1]} does not hold offset {position}, it begins at {earliest}: "
                "records were deleted before they were read. To continue with the remaining records, skip them "
                "(in Spark failOnDataLoss=false).",
            )
        return min(earliest, end) if earliest > position else end


def _only_partition(response: FetchResponse) -> PartitionData:
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code))
    data = response.responses[0].partitions[0]
    if data.error_code:
        raise ApiError(ErrorCode(data.error_code))
    return data


class _Patience:
    """The time without progress, and the pause before a retry."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.renew()

    def renew(self) -> None:
        """Restart the timeout: data has arrived."""
        self._deadline = time.monotonic() + self._timeout_s
        self._pause_s = _PAUSE_S

    def check(self, source: str) -> None:
        """Raise TimedOut if no data has arrived for too long."""
        if time.monotonic() > self._deadline:
            raise TimedOut(f"nothing came from {source} for {self._timeout_s:g} s")

    def pause(self, error: Exception) -> None:
        """Wait before a retry; raise the last error if the time is over."""
        if time.monotonic() + self._pause_s > self._deadline:
            raise error
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _PAUSE_S_MAX)

"""Reading a coordinator's partition from its start, with the same replay as in live operation.

Loading yields to the event loop after every slice of work, so a long log delays other requests by
no more than one slice. A record or batch that cannot be read is reported and skipped, unlike in
Kafka, which rejects the whole partition: one bad record must not make every group in it
unavailable. Follows CoordinatorLoaderImpl.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from ottla.base.buffers import Buffer
from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ProtocolError
from ottla.coordinators.ports import PartitionWriter
from ottla.wire.records import batch, control, records
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

SLICE_SECONDS = 0.005
# Several of the largest batches that fit into a slice; more would only delay other disk reads.
CHUNK_BYTES_MAX = 256 * 1024
# Skipped records that are reported one by one; of more, the number is.
_REPORTED_MAX = 10


class Replayed(Protocol):
    """An object that rebuilds its state from records."""

    def replay(self, record: Record, producer_id: int = batch.NO_PRODUCER_ID) -> None:
        """Apply one record; `producer_id` is the producer id of the transaction it belongs to, or
        -1.
        """
        ...

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Apply or drop the records of the producer's transaction."""
        ...


class Loader:
    """Reads one partition once; after every pause `is_wanted` returns whether to continue.

    `skipped_count` is the number of records that could not be read.
    """

    def __init__(
        self,
        writer: PartitionWriter,
        clock: Clock,
        *,
        chunk_bytes: int,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._chunk_bytes = min(chunk_bytes, CHUNK_BYTES_MAX)
        self._is_wanted = is_wanted
        self._slice_ends = 0.0
        self.skipped_count = 0
        self._place = ("", 0)

    async def load(self, topic: str, partition: int, target: Replayed) -> tuple[int, int]:
        """Replay the whole log; return the number of records and the log end offset.

        Raises ApiError if the log cannot be read.
        """
        offset, log_end_offset = self._writer.bounds(topic, partition)
        self._place = (topic, partition)
        count = 0
        self._start_slice()
        while offset < log_end_offset and self._is_wanted():
            sound = self._writer.read(topic, partition, offset, self._chunk_bytes)
            for header, data in sound.batches:
                count += await self._replay_batch(data, header, target)
            for skipped in sound.skipped:
                self._skip(skipped.offset, skipped.records_count, "the bytes are damaged")
            offset = sound.next_offset
        if self.skipped_count > _REPORTED_MAX:
            _log.warning("records skipped topic=%s partition=%d count=%d",
                         topic, partition, self.skipped_count)  # fmt: skip
        return count, log_end_offset

    async def _replay_batch(self, data: Buffer, header: batch.BatchHeader, target: Replayed) -> int:
        try:
            decoded = records.decode_batch(data, header=header)
        except ApiError as error:
            self._skip(header.base_offset, header.records_count, error)
            return 0
        producer_id = header.producer_id if header.is_transactional else batch.NO_PRODUCER_ID
        for record in decoded:
            if self._clock.monotonic() >= self._slice_ends:
                await self._clock.sleep(0)
                if not self._is_wanted():
                    return 0
                self._start_slice()
            try:
                if header.is_control:
                    _replay_marker(record, header.producer_id, target)
                else:
                    target.replay(record, producer_id)
            except (ApiError, ProtocolError) as error:
                self._skip(record.offset, 1, error)
        return 0 if header.is_control else len(decoded)

    def _skip(self, offset: int, count: int, error: object) -> None:
        topic, partition = self._place
        if self.skipped_count < _REPORTED_MAX:
            _log.warning("record cannot be read, skipped topic=%s partition=%d offset=%d count=%d "
                         "error=%s", topic, partition, offset, count, error)  # fmt: skip
        self.skipped_count += count

    def _start_slice(self) -> None:
        self._slice_ends = self._clock.monotonic() + SLICE_SECONDS


def _replay_marker(record: Record, producer_id: int, target: Replayed) -> None:
    marker = control.parse_marker(record)
    if marker is not None:
        is_committed = marker.type is control.ControlType.COMMIT
        target.end_transaction(producer_id, is_committed=is_committed)

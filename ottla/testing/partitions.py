"""Partitions in memory for tests of coordinators: real batches, committed when the test says so.

Replaces the partitions that `server.node` passes to them; see `coordinators.ports.PartitionWriter`.
"""

import asyncio
from dataclasses import dataclass, field

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.ports import Marker, TransactionalProducer
from ottla.storage.files.sound import Extent, SoundBatches, read_batches
from ottla.wire.records import batch, control
from ottla.wire.records.records import Record, encode_batch, iterate_records


@dataclass(slots=True)
class _Log:
    batches: list[bytes] = field(default_factory=list)
    end_offset: int = 0
    committed_batches: int = 0
    leader_epoch: int = 0


class MemoryPartitions:
    """All partitions; every name exists. `holds_commits` keeps appends uncommitted until `commit`.

    `refuses` makes appends fail before they write; `lose` removes uncommitted records.
    """

    def __init__(self) -> None:
        self.holds_commits = False
        self.refuses: ErrorCode | None = None
        self.reads = 0
        self._logs: dict[tuple[str, int], _Log] = {}
        self._waiting: list[tuple[_Log, asyncio.Future[int], int]] = []

    def append(
        self,
        topic: str,
        partition: int,
        records: list[Record],
        leader_epoch: int | None = None,
        *,
        compression: int = 0,
        producer: TransactionalProducer | None = None,
    ) -> asyncio.Future[int]:
        """Append one batch."""
        writer = producer or TransactionalProducer(batch.NO_PRODUCER_ID, -1)
        encoded = encode_batch(
            records,
            compression=compression,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            transactional=producer is not None,
        )
        return self._append(topic, partition, encoded, leader_epoch)

    def append_marker(
        self, topic: str, partition: int, marker: Marker, leader_epoch: int | None = None
    ) -> asyncio.Future[int]:
        """Append a transaction marker."""
        kind = control.ControlType.COMMIT if marker.is_commit else control.ControlType.ABORT
        encoded = control.encode_marker(
            control.EndTransactionMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=0,
        )
        return self._append(topic, partition, encoded, leader_epoch)

    def _append(
        self, topic: str, partition: int, encoded: bytearray, leader_epoch: int | None
    ) -> asyncio.Future[int]:
        if self.refuses is not None:
            raise ApiError(self.refuses)
        log = self._log(topic, partition)
        if leader_epoch is not None and leader_epoch < log.leader_epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        batch.patch_offset_and_epoch(encoded, 0, log.end_offset, 0)
        log.batches.append(bytes(encoded))
        log.end_offset = batch.parse_header(encoded).last_offset + 1
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((log, committed, log.end_offset - 1))
        if not self.holds_commits:
            self.commit()
        return committed

    def append_batch(self, topic: str, partition: int, encoded: bytes | bytearray) -> None:
        """Append a committed batch of any kind, as written by another producer."""
        log = self._log(topic, partition)
        view = bytearray(encoded)
        batch.patch_offset_and_epoch(view, 0, log.end_offset, 0)
        log.batches.append(bytes(view))
        log.end_offset = batch.parse_header(view).last_offset + 1
        log.committed_batches = len(log.batches)

    def commit(self) -> None:
        """Commit all records written so far."""
        waiting, self._waiting = self._waiting, []
        for log, committed, last_offset in waiting:
            log.committed_batches = len(log.batches)
            if not committed.done():
                committed.set_result(last_offset)

    def lose(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Remove uncommitted records, as a new leader would."""
        waiting, self._waiting = self._waiting, []
        for log, committed, _ in waiting:
            del log.batches[log.committed_batches :]
            log.end_offset = 0
            if log.batches:
                log.end_offset = batch.parse_header(log.batches[-1]).last_offset + 1
            if not committed.done():
                committed.set_exception(ApiError(code))

    def move_leader(self, topic: str, partition: int, leader_epoch: int) -> None:
        """Reject appends of older leader epochs from now on."""
        self._log(topic, partition).leader_epoch = leader_epoch

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> SoundBatches:
        """Return undamaged batches, beginning with the one that contains `offset`."""
        self.reads += 1
        log = self._log(topic, partition)
        data = b"".join(log.batches)
        extent = Extent(0, log.end_offset, len(data))
        return read_batches(
            lambda position, size: data[position : position + size], extent, offset, max_bytes
        )

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the start and end offset of the log."""
        log = self._log(topic, partition)
        if log.leader_epoch < 0:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return 0, log.end_offset

    def committed(self, topic: str, partition: int, end_offset: int) -> asyncio.Future[int]:
        """Return a future of the commit of everything below `end_offset`."""
        log = self._log(topic, partition)
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if log.committed_batches == len(log.batches):
            committed.set_result(end_offset - 1)
        else:
            self._waiting.append((log, committed, end_offset - 1))
        return committed

    def records(self, topic: str, partition: int) -> list[Record]:
        """Return all records that were written."""
        return list(iterate_records(b"".join(self._log(topic, partition).batches)))

    def _log(self, topic: str, partition: int) -> _Log:
        return self._logs.setdefault((topic, partition), _Log())

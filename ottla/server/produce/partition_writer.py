"""Writing and reading of the coordinators' partitions (the PartitionWriter port)."""

import asyncio

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, OutOfDescriptorsError, StorageError
from ottla.coordinators.ports import Marker, TransactionalProducer
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.replication.replicas import Replicas
from ottla.storage.files.sound import SoundBatches
from ottla.wire.records import batch, control
from ottla.wire.records.records import Record, encode_batch

_NOBODY = TransactionalProducer(batch.NO_PRODUCER_ID, -1)


class ReplicaWriter:
    """Appends to and reads from the partitions that this broker leads."""

    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock

    def append(
        self,
        topic: str,
        partition: int,
        records: list[Record],
        leader_epoch: int | None = None,
        *,
        compression: int = 0,
        producer: TransactionalProducer | None = None,
    ) -> "asyncio.Future[int]":
        """Write `records` as one batch with acks=all; the future is done when it is committed."""
        target = self._led(topic, partition, leader_epoch)
        writer = producer or _NOBODY
        encoded = encode_batch(
            records,
            compression=compression,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            transactional=producer is not None,
        )
        return _append(target, encoded)

    def append_marker(
        self, topic: str, partition: int, marker: Marker, leader_epoch: int | None = None
    ) -> "asyncio.Future[int]":
        """Write a marker with acks=all; the future is done when it is committed."""
        target = self._led(topic, partition, leader_epoch)
        return _append(target, encode_marker(marker, self._clock.time_ms()))

    def _led(self, topic: str, partition: int, leader_epoch: int | None) -> Partition:
        target = self._replicas.get(topic, partition)
        if leader_epoch is not None and leader_epoch != target.leader_epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return target

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> SoundBatches:
        """Return undamaged batches from the one that contains `offset` on."""
        target = self._replicas.get(topic, partition)
        target.check_leader()
        try:
            return target.log.read_sound(offset, max_bytes)
        except OutOfDescriptorsError:
            raise
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return log start and log end offset; raises ApiError if this broker is not the leader."""
        target = self._replicas.get(topic, partition)
        target.check_leader()
        return target.log.log_start_offset, target.log.log_end_offset

    def committed(self, topic: str, partition: int, end_offset: int) -> "asyncio.Future[int]":
        """Return a future that is done when all records below `end_offset` are committed."""
        target = self._replicas.get(topic, partition)
        target.check_leader()
        # With fewer replicas in sync than a write would need they are committed all the same.
        return _committed(target, end_offset, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def encode_marker(marker: Marker, timestamp: int) -> bytearray:
    """Return the control batch of a marker; `timestamp` in ms."""
    kind = control.ControlType.COMMIT if marker.is_commit else control.ControlType.ABORT
    return control.encode_marker(
        control.EndTransactionMarker(kind, marker.coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp=timestamp,
    )


def _append(target: Partition, encoded: bytearray) -> "asyncio.Future[int]":
    info = target.append_as_leader(encoded, acks=ACKS_ALL, from_client=False)
    return _committed(target, info.last_offset + 1)


def _committed(
    target: Partition, end_offset: int, allowed: ErrorCode = ErrorCode.NONE
) -> "asyncio.Future[int]":
    committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    if target.is_acknowledged(ACKS_ALL, end_offset):
        committed.set_result(end_offset - 1)
        return committed

    def settle(done: "asyncio.Future[ErrorCode]") -> None:
        if committed.done():
            return
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if done.cancelled() else done.result()
        if code not in (ErrorCode.NONE, allowed):
            committed.set_exception(ApiError(code))
        else:
            committed.set_result(end_offset - 1)

    waiting = target.wait_for_acknowledgement(ACKS_ALL, end_offset, None)
    waiting.add_done_callback(settle)
    return committed

"""The interfaces that a coordinator requires; `server/coordinators.py` implements them.

A coordinator stores its state in a partition of an internal topic that this broker leads. It reads
the partition once, when it becomes its coordinator, and from then on only appends.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply
from ottla.storage.files.sound import SoundBatches
from ottla.wire.records.records import Record


class TransactionalProducer(NamedTuple):
    """The producer to whose transaction the written records belong."""

    producer_id: int
    producer_epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction; `coordinator_epoch` is its coordinator's.

    `transaction_version` is the transaction's: from 2 on the marker's epoch is one that none
    of the transaction's records has (KIP-1228).
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0


class MarkerWriter(Protocol):
    """Writes markers to the partitions of a transaction, on the brokers that lead them."""

    def write(
        self, marker: Marker, partitions: Sequence[tuple[str, int]]
    ) -> Reply[Mapping[tuple[str, int], ErrorCode]]:
        """Write the marker to each (topic, partition) and return an error code for each.

        The code is NONE if the marker is committed. The future does not fail. A marker that was
        already written may be written again.
        """
        ...


class PartitionWriter(Protocol):
    """Appends to, and reads from, partitions that this broker leads. Lives on the broker's loop."""

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
        """Write `records` as one batch with acks=all; the future completes when they are committed.

        With `producer` they belong to its transaction; INVALID_PRODUCER_EPOCH if it is fenced.
        Raises ApiError if nothing was written: NOT_LEADER_OR_FOLLOWER (also if `leader_epoch` is no
        longer the partition's), NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE, KAFKA_STORAGE_ERROR. The
        future completes with the offset of the last record as soon as the high watermark has passed
        it, immediately if this is the only replica. It fails with ApiError if the records were
        written but may be lost again. It has no deadline.
        """
        ...

    def append_marker(
        self, topic: str, partition: int, marker: Marker, leader_epoch: int | None = None
    ) -> asyncio.Future[int]:
        """Write a marker as `append` writes records; also raises TRANSACTION_COORDINATOR_FENCED."""
        ...

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> SoundBatches:
        """Return undamaged batches, beginning with the one that contains `offset`.

        Returns about `max_bytes`, more if the next batch is larger, up to the end of a segment.
        Damaged batches are skipped and reported. Raises ApiError, and OutOfDescriptorsError if the
        read may be tried again.
        """
        ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return log start offset and log end offset; raises ApiError if this broker does not lead."""
        ...

    def committed(self, topic: str, partition: int, end_offset: int) -> asyncio.Future[int]:
        """Return a future that is done when all records below `end_offset` are committed.

        It fails with ApiError like the future of `append`.
        """
        ...

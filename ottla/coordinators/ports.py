"""What a coordinator needs from the broker around it; `server/node.py` supplies it.

A coordinator keeps its state in a partition of an internal topic that this broker leads. It reads
the partition once, when it becomes its coordinator, and from then on only appends.
"""

import asyncio
from typing import Protocol

from ottla.wire.records.records import Record


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
    ) -> asyncio.Future[int]:
        """Write `records` as one batch with acks=all; the future tells of the commit.

        Raises ApiError where nothing was written: NOT_LEADER_OR_FOLLOWER (also where
        `leader_epoch` is no longer the partition's), NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE,
        KAFKA_STORAGE_ERROR. The future completes with the offset of the last record as soon as
        the high watermark has passed it, at once where this is the only replica; it fails with
        ApiError where the records were written but may be lost again. It has no deadline.
        """
        ...

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds `offset` on, up to the log end offset.

        At least one whole batch even where it is larger than `max_bytes`; the last may be cut.
        Empty only at the end of the log. Raises ApiError.
        """
        ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return log start offset and log end offset; ApiError where this broker does not lead."""
        ...

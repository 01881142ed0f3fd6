"""The follower's half of replication: append the leader's records, truncate records it lacks.

Functions of a Partition that follows, called on the broker's loop; they follow
ReplicaFetcherThread.processPartitionData and AbstractFetcherThread.getOffsetTruncationState.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.base.errors import ApiError, StorageError
from ottla.base.tasks import Tasks
from ottla.replication.follower_fetches import Followed
from ottla.replication.partition import Partition
from ottla.wire.messages.fetch import PartitionData

_log = logging.getLogger(__name__)

Key = tuple[str, int]


def is_following(partition: Partition, leader_epoch: int) -> bool:
    """Return True if the replica still follows a leader in this epoch and may be written."""
    return (
        partition.leader_epoch == leader_epoch
        and not partition.is_leader
        and not partition.is_deleted
        and not partition.is_offline
    )


def begin(partition: Partition, key: tuple[bytes, int]) -> Followed:
    """Return the position at which the replica starts to fetch: the end of its log."""
    followed = Followed(partition.topic, key, partition.leader_epoch)
    synchronize(partition, followed)
    return followed


def is_durable(partition: Partition) -> bool:
    """Return False if the leader would count records as stored that a power loss could destroy."""
    log = partition.log
    return not log.config.flush_on_ack or log.recovery_point >= log.log_end_offset


def synchronize(partition: Partition, followed: Followed) -> None:
    """Move the fetch position to the end of the log.

    With flush.on.ack the position counts as durable on the leader, so the caller flushes first.
    """
    log = partition.log
    followed.move_to(log.log_end_offset, log.epochs.latest, log.log_start_offset)


def append(partition: Partition, data: PartitionData) -> None:
    """Append the leader's records, and apply its high watermark and log start offset.

    With flush.on.ack, the caller flushes the log before the next fetch. Raises ApiError if the
    records are damaged or do not continue the log, and StorageError.
    """
    log = partition.log
    if data.records:
        assert not isinstance(data.records, list), "a received response has one buffer"
        info = log.append_as_follower(data.records)
        partition.appended_bytes += info.size_bytes
        partition.replicated_bytes += info.size_bytes
    advance_high_watermark(partition, data.high_watermark)
    if data.log_start_offset > log.log_start_offset:
        # Records were deleted on the leader (DeleteRecords), whose committed offset may be ahead.
        log.truncation.advance_log_start_offset(
            min(data.log_start_offset, partition.high_watermark)
        )
    partition.changed()


def advance_high_watermark(partition: Partition, leader_high_watermark: int) -> None:
    """Apply the leader's high watermark as far as this log reaches; it never moves back here."""
    high_watermark = min(leader_high_watermark, partition.log.log_end_offset)
    if high_watermark > partition.high_watermark:
        partition.high_watermark = partition.log.high_watermark = high_watermark
        partition.log.producers.decide_up_to(high_watermark)


def truncation_offset(partition: Partition, epoch: int, end_offset: int) -> int:
    """Return the offset at which to truncate a log that diverges from the leader's, in which
    `epoch` ends at `end_offset`.

    If this log does not have that epoch, it is truncated to the end of its next older epoch, and
    the next fetch compares again (KIP-279).
    """
    log = partition.log
    if epoch < 0:
        # The leader knows no epoch up to the follower's: only its end offset is known.
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_epoch < 0:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)


async def truncate(partition: Partition, offset: int) -> None:
    """Cut the log at `offset`, waiting for the device off the event loop; raises StorageError."""
    log = partition.log
    _log.info(
        "replica truncated partition=%s-%d from=%d to=%d high_watermark=%d epoch=%d",
        partition.topic, partition.partition, log.log_end_offset, offset,
        partition.high_watermark, partition.leader_epoch,
    )  # fmt: skip
    # Only an unclean election makes a committed record disappear.
    _lower_high_watermark(partition, offset)
    await log.truncation.truncate_to_in_background(offset, _is_unchanged(partition))
    _lower_high_watermark(partition, partition.log.log_end_offset)
    partition.changed()


async def start_at(partition: Partition, offset: int) -> None:
    """Delete the whole log and continue at `offset`, where the leader's begins."""
    _log.warning(
        "replica starts again partition=%s-%d old_end=%d leader_start=%d",
        partition.topic, partition.partition, partition.log.log_end_offset, offset,
    )  # fmt: skip
    log, is_unchanged = partition.log, _is_unchanged(partition)
    await log.truncation.restart_in_background(offset, is_unchanged)
    if is_unchanged():
        partition.high_watermark = log.high_watermark = offset
        partition.changed()


def _is_unchanged(partition: Partition) -> Callable[[], bool]:
    """Return a function that returns False when the log is gone: deleted, offline or moved."""
    log = partition.log
    return lambda: partition.log is log and not (partition.is_deleted or partition.is_offline)


def _lower_high_watermark(partition: Partition, offset: int) -> None:
    if partition.high_watermark > offset:
        partition.high_watermark = partition.log.high_watermark = offset


Work = Callable[[Partition, int], Coroutine[Any, Any, None]]
"""`truncate` or `start_at`."""


class Truncations:
    """Truncations that wait for the device; until they end, a replica must not get another role.

    They end even if their caller is cancelled: a half-truncated log would accept appends.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._running: dict[Key, asyncio.Task[Exception | None]] = {}

    async def run(self, partition: Partition, work: Work, offset: int) -> None:
        """Run `truncate` or `start_at`; raises their errors."""
        key = (partition.topic, partition.partition)
        task = self._running[key] = self._tasks.spawn(
            self._end(partition, work, offset), "truncation"
        )
        error = await asyncio.shield(task)
        if error is not None:
            raise error

    async def _end(self, partition: Partition, work: Work, offset: int) -> Exception | None:
        try:
            await work(partition, offset)
        except (ApiError, StorageError) as error:
            return error
        finally:
            del self._running[partition.topic, partition.partition]
        return None

    async def wait(self, topic: str, partition: int) -> bool:
        """Return when no truncation of this replica is running; True if one was."""
        task = self._running.get((topic, partition))
        if task is None:
            return False
        # Its error is the fetcher's.
        await asyncio.wait([task])
        return True

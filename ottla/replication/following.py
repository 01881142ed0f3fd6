"""The follower's half of replication: append the leader's records, truncate records it lacks.

Functions of a Partition that follows, called on the broker's loop; they follow
ReplicaFetcherThread.processPartitionData and AbstractFetcherThread.getOffsetTruncationState.

Not done: truncation waits on the event loop until the device has stored it.
"""

import logging

from ottla.replication.follower_fetches import Followed
from ottla.replication.partition import Partition
from ottla.wire.messages.fetch import PartitionData

_log = logging.getLogger(__name__)


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


def synchronize(partition: Partition, followed: Followed) -> None:
    """Move the fetch position to the end of the log.

    With flush.on.ack the position counts as durable on the leader, so the caller flushes first.
    """
    log = partition.log
    followed.move_to(log.log_end_offset, log.epochs.latest, log.log_start_offset)


def append(partition: Partition, data: PartitionData) -> None:
    """Append the leader's records, and apply its high watermark and log start offset.

    With flush.on.ack, the caller flushes the log before the next fetch. Raises ApiError if the records are damaged or do not continue the log, and StorageError.
    """
    log = partition.log
    if data.records:
        assert not isinstance(data.records, list), "a received response has one buffer"
        info = log.append_as_follower(data.records)
        partition.appended_bytes += info.size_bytes
        partition.followed_bytes += info.size_bytes
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
    """Return where to cut a log that diverges: in the leader's log, `epoch` ends at `end_offset`.

    If this log does not know that epoch, it is cut at the end of its own next older one; the next
    fetch then compares again (KIP-279).
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


def truncate(partition: Partition, offset: int) -> None:
    """Cut the log at `offset`; raises StorageError."""
    log = partition.log
    _log.info(
        "replica truncated partition=%s-%d from=%d to=%d high_watermark=%d epoch=%d",
        partition.topic, partition.partition, log.log_end_offset, offset,
        partition.high_watermark, partition.leader_epoch,
    )  # fmt: skip
    log.truncation.truncate_to(offset)
    _lower_high_watermark(partition)


def start_at(partition: Partition, offset: int) -> None:
    """Delete the whole log and continue at `offset`, where the leader's begins."""
    _log.warning(
        "replica starts again partition=%s-%d old_end=%d leader_start=%d",
        partition.topic, partition.partition, partition.log.log_end_offset, offset,
    )  # fmt: skip
    partition.log.truncation.truncate_fully_and_start_at(offset)
    partition.high_watermark = partition.log.high_watermark = offset
    partition.changed()


def _lower_high_watermark(partition: Partition) -> None:
    # Only an unclean election makes a committed record disappear.
    end_offset = partition.log.log_end_offset
    if partition.high_watermark > end_offset:
        partition.high_watermark = partition.log.high_watermark = end_offset
    partition.changed()

"""The leader's half of replication: where a follower's log diverges, and decided ISR changes.

Functions of a Partition that leads, called on the broker's loop. Follows kafka.cluster.Partition.
"""

from collections.abc import Callable, Iterable

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.cluster.image import PartitionImage
from ottla.replication.fetched import READ_COMMITTED
from ottla.replication.isr import IsrMachine
from ottla.replication.partition import Partition

# The consumer should read from the leader.
NO_PREFERENCE = -1


def divergence(
    partition: Partition, last_fetched_epoch: int, offset: int
) -> tuple[int, int] | None:
    """Return where a follower's log diverges from this one: an epoch and its end offset in this
    log.

    None if the follower's log, which ends at `offset` in `last_fetched_epoch`, is a prefix of this
    one. Raises OFFSET_OUT_OF_RANGE if its epoch is unknown here (KIP-595).
    """
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Epoch {last_fetched_epoch} of the last fetched record is unknown.",
        )
    if epoch < last_fetched_epoch or end_offset < offset:
        return epoch, end_offset
    return None


def readable_end(partition: Partition, isolation_level: int) -> int:
    """Return the offset up to which a consumer of this isolation level reads."""
    if isolation_level == READ_COMMITTED:
        return partition.log.last_stable_offset(partition.high_watermark)
    return partition.high_watermark


def delete_records(partition: Partition, offset: int) -> int:
    """Move the log start to `offset` (-1: the high watermark), and return it (KIP-107).

    The followers' logs start there after their next fetch. ApiError OFFSET_OUT_OF_RANGE or
    KAFKA_STORAGE_ERROR.
    """
    partition.check_leader()
    high_watermark = partition.high_watermark
    target = high_watermark if offset == -1 else offset
    if not 0 <= target <= high_watermark:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {target} is not between 0 and the high watermark {high_watermark}.",
        )
    try:
        partition.log.truncation.advance_log_start_offset(target)
    except StorageError as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    partition.changed()
    return target


def low_watermark(partition: Partition, is_alive: Callable[[int], bool]) -> int:
    """Return the smallest log start offset of the live replicas; ApiError if this is no leader."""
    partition.check_leader()
    assert partition.isr is not None
    return partition.isr.low_watermark(partition.log.log_start_offset, is_alive)


def isr_decided(partition: Partition, isr: Iterable[int], partition_epoch: int) -> None:
    """Apply the controller's response to a proposal of this leader (KIP-497)."""
    if partition.isr is None or partition_epoch < partition.partition_epoch:
        return
    partition.partition_epoch = partition_epoch
    partition.isr.assign(partition.replicas, isr)
    partition.advance()
    partition.changed()


def isr_published(partition: Partition, published: PartitionImage) -> None:
    """Apply an ISR that the controller has stored for this leader, and publishes to all brokers.

    It is called if the leader did not receive the response to its proposal, or withdrew the
    proposal. Otherwise all its later proposals would be stale, and no request would bring the newer
    state.
    """
    is_same_epoch = published.leader_epoch == partition.leader_epoch
    if is_same_epoch and published.partition_epoch > partition.partition_epoch:
        isr_decided(partition, published.isr, published.partition_epoch)


def preferred_read_replica(
    isr: IsrMachine, offset: int, rack: str, rack_of: Callable[[int], str | None]
) -> int:
    """Return the follower from which a consumer in `rack` should read; -1 for the leader (KIP-392).

    It is in sync, in that rack, and has the offset; among several, the one with the longest log,
    then the one that was caught up last. `rack_of` returns None for a broker that the consumer
    cannot reach. Follows RackAwareReplicaSelector and ReplicaManager.findPreferredReadReplica.
    """
    if not rack or rack_of(isr.node_id) == rack:
        return NO_PREFERENCE
    candidates = [
        (position.log_end_offset, position.caught_up_at, replica)
        for replica, position in isr.followers.items()
        if replica in isr.isr
        and position.log_start_offset <= offset <= position.log_end_offset
        and rack_of(replica) == rack
    ]
    return max(candidates)[-1] if candidates else NO_PREFERENCE

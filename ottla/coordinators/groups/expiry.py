"""The expiration of committed offsets (KIP-186, KIP-211). Pure.

* a group without members: after the retention time since it became empty
* a stable consumer group: offsets of topics that no member reads any more, after the retention time
  since their commit
* offsets of a client that only stores them: after the retention time since their commit
* a group of the consumer protocol (KIP-848): offsets of topics that no member reads, after the
  retention time since their commit
* any other group keeps its offsets
"""

from collections.abc import Mapping

from ottla.coordinators.classic.state import NO_TIMESTAMP, Group, GroupState
from ottla.coordinators.consumer.state import ConsumerGroup
from ottla.coordinators.groups.offsets import NO_EXPIRY, CommittedOffset, TopicPartition


def expired(
    group: Group,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    now_ms: int,
    retention_ms: int,
) -> list[TopicPartition]:
    """Return the partitions whose offsets of this group have expired."""
    if not _may_expire(group):
        return []
    return [
        topic_partition
        for topic_partition, offset in offsets.items()
        if not group.is_subscribed_to(topic_partition[0])
        and _is_old(offset, _base_ms(group, offset), now_ms, retention_ms)
    ]


def expired_in_consumer_group(
    group: ConsumerGroup,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    now_ms: int,
    retention_ms: int,
) -> list[TopicPartition]:
    """Return the partitions whose offsets of a consumer-protocol group have expired."""
    read = group.topics_read()
    return [
        topic_partition
        for topic_partition, offset in offsets.items()
        if topic_partition[0] not in read
        and _is_old(offset, offset.commit_timestamp_ms, now_ms, retention_ms)
    ]


def _may_expire(group: Group) -> bool:
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    is_understood = group.is_consumer_group and group.subscribed_topics is not None
    return is_understood and group.state is GroupState.STABLE


def _base_ms(group: Group, offset: CommittedOffset) -> int:
    """Return the time from which the retention time counts."""
    is_empty = group.protocol_type is not None and group.state is GroupState.EMPTY
    if is_empty and group.state_since_ms != NO_TIMESTAMP:
        return group.state_since_ms
    return offset.commit_timestamp_ms


def _is_old(offset: CommittedOffset, base_ms: int, now_ms: int, retention_ms: int) -> bool:
    if offset.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base_ms >= retention_ms

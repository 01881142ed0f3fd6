"""Elections by request: of preferred leaders, and unclean ones if no replica is in sync. Pure.

Follows ReplicationControlManager.electLeaders (KIP-183, KIP-460).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import IntEnum

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import election
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage
from ottla.controller.planning.creation import leader_and_isr
from ottla.controller.planning.machines import PartitionStatus, move_partition, partition_status
from ottla.controller.planning.requests import PartitionChangeResult

TopicPartition = tuple[str, int]


class ElectionType(IntEnum):
    """The kind of an election, with the codes of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


def plan_elections(
    image: ClusterImage, kind: ElectionType, requested: Iterable[TopicPartition]
) -> tuple[ClusterImage, list[PartitionChangeResult]]:
    """Return the image with the leaders that could be elected, and the result of each partition."""
    results = []
    elected: dict[TopicPartition, PartitionImage] = {}
    for topic, number in requested:
        # A partition that is named twice already has its leader the second time.
        partition = elected.get((topic, number)) or _existing(image, topic, number)
        after = partition if isinstance(partition, ApiError) else _elected(partition, image, kind)
        # Errors are returned, not raised: thousands of them are normal here.
        error = after if isinstance(after, ApiError) else None
        if isinstance(after, PartitionImage):
            elected[topic, number] = after
        results.append(PartitionChangeResult(topic, number, error))
    return _with(image, elected), results


def in_need(image: ClusterImage, kind: ElectionType) -> Iterator[TopicPartition]:
    """Yield the partitions that this kind of election would change."""
    for name, topic in image.topics.items():
        for partition in topic.partitions:
            if not _has_leader(partition, image, kind):
                yield name, partition.partition


def unclean(before: ClusterImage, after: ClusterImage) -> list[TopicPartition]:
    """Return the partitions that got a leader that was not in sync."""
    found = []
    for name, topic in after.topics.items():
        former = before.topics.get(name)
        if former is None or former is topic:
            continue
        for now in topic.differences(former):
            old = former.partition(now.partition)
            # A partition that never had a leader had no replica in sync either.
            if (
                old is not None
                and now.leader != NO_LEADER
                and old.isr
                and now.leader not in old.isr
            ):
                found.append((name, now.partition))
    return found


def _has_leader(partition: PartitionImage, image: ClusterImage, kind: ElectionType) -> bool:
    leader = partition.leader
    is_wanted = kind is not ElectionType.PREFERRED or leader == partition.preferred_leader
    return is_wanted and leader in partition.live(image.brokers)


def _with(image: ClusterImage, elected: dict[TopicPartition, PartitionImage]) -> ClusterImage:
    by_topic: dict[str, list[PartitionImage]] = {}
    for (topic, _), partition in elected.items():
        by_topic.setdefault(topic, []).append(partition)
    if not by_topic:
        return image
    return image.with_topics(
        image.topics[topic].with_partitions(changed) for topic, changed in by_topic.items()
    )


def _existing(image: ClusterImage, topic: str, number: int) -> PartitionImage | ApiError:
    if image.topic(topic) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = image.partition(topic, number)
    if partition is None:
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{number}"
        )
    return partition


def _elected(
    partition: PartitionImage, image: ClusterImage, kind: ElectionType
) -> PartitionImage | ApiError:
    if _has_leader(partition, image, kind):
        return ApiError(ErrorCode.ELECTION_NOT_NEEDED)
    status = partition_status(partition, image.brokers)
    is_preferred = kind is ElectionType.PREFERRED
    election_result = None
    # A new partition gets its leader when the first of its replicas registers.
    if status is not PartitionStatus.NEW:
        replicas, state = partition.replicas, leader_and_isr(partition)
        live = partition.live(image.brokers)
        election_result = (
            election.elect_preferred(replicas, state, live)
            if is_preferred
            else election.elect_for_offline(replicas, state, live, allow_unclean=True)
        )
    if election_result is None:
        return ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if is_preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    move_partition(status, PartitionStatus.ONLINE)
    return replace(
        partition,
        leader=election_result.leader,
        leader_epoch=election_result.leader_epoch,
        isr=election_result.isr,
        is_recovering=election_result.is_recovering,
    )

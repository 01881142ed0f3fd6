"""The beginnings and high watermarks of partitions, from their leaders."""

from collections.abc import Callable, Collection

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.lag.questions import Leaders, PartitionKey, by_leader
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_VERSION = 9
_LATEST, _EARLIEST = -1, -2
_CONSUMER = -1


async def high_watermarks(
    image: ClusterImage, replicas: Replicas, leaders: Leaders, partitions: Collection[PartitionKey]
) -> dict[PartitionKey, int]:
    """Return the high watermark of each partition that has one.

    If a leader does not respond, the end of this broker's replica takes its place: the high
    watermark that a follower knows may be older than the group's offset.
    """

    def own(partition: Partition) -> int:
        return partition.high_watermark if partition.is_leader else partition.log.log_end_offset

    return await _offsets(image, replicas, leaders, partitions, (_LATEST, own))


async def log_starts(
    image: ClusterImage, replicas: Replicas, leaders: Leaders, partitions: Collection[PartitionKey]
) -> dict[PartitionKey, int]:
    """Return the offset at which each partition begins, as far as it is known."""

    def own(partition: Partition) -> int:
        return partition.log.log_start_offset

    return await _offsets(image, replicas, leaders, partitions, (_EARLIEST, own))


async def _offsets(
    image: ClusterImage,
    replicas: Replicas,
    leaders: Leaders,
    partitions: Collection[PartitionKey],
    wanted: tuple[int, Callable[[Partition], int]],
) -> dict[PartitionKey, int]:
    timestamp, own = wanted
    ends: dict[PartitionKey, int] = {}
    elsewhere: list[PartitionKey] = []
    for topic, number in partitions:
        partition = replicas.find(topic, b"", number)
        if partition is not None and not partition.is_offline:
            ends[topic, number] = own(partition)
        if partition is None or not partition.is_leader:
            elsewhere.append((topic, number))
    questions = [
        (leader, _request(keys, timestamp))
        for leader, keys in by_leader(image, elsewhere).items()
        if leader != replicas.node_id
    ]
    for response in await leaders.ask(questions, _VERSION, ListOffsetsResponse):
        for topic_answer in () if response is None else response.topics:
            for partition_answer in topic_answer.partitions:
                if partition_answer.error_code == ErrorCode.NONE:
                    ends[topic_answer.name, partition_answer.partition_index] = (
                        partition_answer.offset
                    )
    return ends


def _request(partitions: Collection[PartitionKey], timestamp: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, partition in partitions:
        if topic not in topics:
            topics[topic] = ListOffsetsTopic(name=topic, partitions=[])
        requested = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topics[topic].partitions.append(requested)
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values()))

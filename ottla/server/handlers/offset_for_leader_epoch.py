"""OffsetForLeaderEpoch (key 23), versions 2-4: the end offset of a leader epoch (KIP-101, KIP-320).

v2: current leader epoch. v3: replica id. v4: flexible.

Not done: nothing.
"""

from ottla.base.errors import ApiError
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

API = ApiKey.OFFSET_FOR_LEADER_EPOCH
MIN_VERSION = 2
MAX_VERSION = 4


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return for each partition the largest epoch not above the requested one, and its end offset."""
    topics = [
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[_end(context, topic.topic, partition) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


def _end(
    context: RequestContext, topic: str, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    try:
        partition = context.broker.replicas.get(topic, requested.partition)
        partition.check_leader(requested.current_leader_epoch)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    except ApiError as error:
        return EpochEndOffset(partition=requested.partition, error_code=int(error.code))
    return EpochEndOffset(
        partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )

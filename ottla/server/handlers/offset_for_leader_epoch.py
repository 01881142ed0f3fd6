"""OffsetForLeaderEpoch (key 23), versions 2-4: the end offset of a leader epoch (KIP-101, KIP-320).

v2: current leader epoch. v3: replica id. v4: flexible.

A client may hear of a new leader from another broker before the controller informs the leader
itself. The response then waits for a moment: after an error librdkafka asks again only 500 ms
later, and its handling of the error has a deadlock (see `handlers.metadata`).

Not done: nothing.
"""

import asyncio

from ottla.base.errors import ApiError
from ottla.base.uuids import ZERO_UUID
from ottla.server.context import RequestContext
from ottla.server.quotas.steps import counted
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

# How long a consumer waits until this broker knows the epoch that it has heard of, in seconds;
# between two looks for it.
_NEWS_SECONDS = 1.0
_LOOK_SECONDS = 0.005


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> "OffsetForLeaderEpochResponse | asyncio.Future[OffsetForLeaderEpochResponse]":
    """Return for each partition the largest epoch not above the requested one, and its end offset.

    Returns a future while a consumer knows a later leader epoch than this broker.
    """
    if request.replica_id < 0 and _is_ahead(context, request):
        clock = context.broker.clock
        answer = _answer_later(context, request, clock.monotonic() + _NEWS_SECONDS)
        work = counted(answer, context.usage, clock)
        return context.broker.tasks.spawn(work, "end of an epoch of a leader that is not informed")
    return _answer(context, request)


def _is_ahead(context: RequestContext, request: OffsetForLeaderEpochRequest) -> bool:
    find = context.broker.replicas.find
    for topic in request.topics:
        for asked in topic.partitions:
            replica = find(topic.topic, ZERO_UUID, asked.partition)
            if replica is not None and asked.current_leader_epoch > replica.leader_epoch:
                return True
    return False


async def _answer_later(
    context: RequestContext, request: OffsetForLeaderEpochRequest, deadline: float
) -> OffsetForLeaderEpochResponse:
    clock = context.broker.clock
    while _is_ahead(context, request) and clock.monotonic() < deadline:
        await clock.sleep(_LOOK_SECONDS)
    return _answer(context, request)


def _answer(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
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

"""OffsetForLeaderEpoch (API key 23): where a leader epoch ends; how replicas and consumers find a
divergence.

Versions 2-4; what each one added:

    2     current leader epoch; throttle time
    3     replica id (-2: a client that may see uncommitted offsets)
    4     flexible
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    """An element of `partitions`."""

    partition: int = int32()
    current_leader_epoch: int = int32(default=-1)
    leader_epoch: int = int32()


class OffsetForLeaderTopic(Struct):
    """An element of `topics`."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Message, api_key=23, versions=(2, 4), flexible_since=4):
    """Request of OffsetForLeaderEpoch."""

    replica_id: int = int32(since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Struct):
    """An element of `partitions`."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


class OffsetForLeaderTopicResult(Struct):
    """An element of `topics`."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Message, api_key=23, versions=(2, 4), flexible_since=4):
    """Response of OffsetForLeaderEpoch."""

    throttle_time_ms: int = int32()
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)

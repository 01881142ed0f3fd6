"""OffsetCommit (API key 8): store the offsets of a group.

Versions 2-10; what each one added:

    2     retention time, for the whole request
    3     throttle time
    5     retention time is gone: a broker option now
    6     leader epoch (KIP-320)
    7     static members (KIP-345)
    8     flexible
    9     consumer protocol of KIP-848: the generation is a member epoch
    10    topic ids instead of names (KIP-848)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=6, default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable_since=0)


class OffsetCommitRequestTopic(Struct):
    """An element of `topics`."""

    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, api_key=8, versions=(2, 10), flexible_since=8):
    """Request of OffsetCommit."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=7, nullable_since=0, default=None)
    retention_time_ms: int = int64(until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Struct):
    """An element of `topics`."""

    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, api_key=8, versions=(2, 10), flexible_since=8):
    """Response of OffsetCommit."""

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)

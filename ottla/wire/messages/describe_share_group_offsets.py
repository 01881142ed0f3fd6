"""DescribeShareGroupOffsets (API key 90): start offsets of share groups (KIP-932).

Versions 0-1, flexible; what each one added:

    1     lag (KIP-1226)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """An element of `topics`."""

    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """An element of `groups`."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable_since=0
    )


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions=(0, 1), flexible_since=0):
    """Request of DescribeShareGroupOffsets."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup
    )


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64(since=1, default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """An element of `topics`."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """An element of `groups`."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
        DescribeShareGroupOffsetsResponseTopic
    )
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions=(0, 1), flexible_since=0):
    """Response of DescribeShareGroupOffsets."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup
    )

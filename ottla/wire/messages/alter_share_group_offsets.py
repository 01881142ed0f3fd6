"""AlterShareGroupOffsets (API key 91): set start offsets of a share group (KIP-932).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    start_offset: int = int64()


class AlterShareGroupOffsetsRequestTopic(Struct):
    """An element of `topics`."""

    topic_name: str = string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
        AlterShareGroupOffsetsRequestPartition
    )


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions=(0, 0), flexible_since=0):
    """Request of AlterShareGroupOffsets."""

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    """An element of `responses`."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
        AlterShareGroupOffsetsResponsePartition
    )


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions=(0, 0), flexible_since=0):
    """Response of AlterShareGroupOffsets."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic
    )

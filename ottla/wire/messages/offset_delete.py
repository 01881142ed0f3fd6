"""OffsetDelete (API key 47): delete stored offsets of a group for single partitions (KIP-496).

Version 0, not flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()


class OffsetDeleteRequestTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Message, api_key=47, versions=(0, 0)):
    """Request of OffsetDelete."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetDeleteResponseTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Message, api_key=47, versions=(0, 0)):
    """Response of OffsetDelete."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)

"""ListOffsets (API key 2): find offsets by timestamp.

Versions 1-11; what each one added:

    1     one offset and its timestamp a partition
    2     isolation level; throttle time
    4     leader epochs (KIP-320)
    5     OFFSET_NOT_AVAILABLE may be returned
    6     flexible
    7     timestamp -3: the record of the highest timestamp (KIP-734)
    8     timestamp -4: earliest local offset (KIP-405)
    9     timestamp -5: latest tiered offset (KIP-1005)
    10    a timeout for remote storage (KIP-1075)
    11    timestamp -6: earliest offset not yet uploaded (KIP-1023)

Timestamps -1 and -2 ask for the latest and the earliest offset.
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
    timestamp: int = int64()


class ListOffsetsTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, api_key=2, versions=(1, 11), flexible_since=6):
    """Request of ListOffsets."""

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(since=4, default=-1)


class ListOffsetsTopicResponse(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, api_key=2, versions=(1, 11), flexible_since=6):
    """Response of ListOffsets."""

    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)

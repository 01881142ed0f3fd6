"""OffsetFetch (API key 9): read the stored offsets of groups.

Versions 1-10; what each one added:

    2     null topics asks for all; error code for the group
    3     throttle time
    5     leader epoch (KIP-320)
    6     flexible
    7     require_stable: wait for open transactions (KIP-447)
    8     several groups at once (KIP-709)
    9     member id and epoch (KIP-848)
    10    topic ids instead of names (KIP-848)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class OffsetFetchRequestTopics(Struct):
    """An element of `topics`."""

    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partition_indexes: list[int] = array(int32)


class OffsetFetchRequestGroup(Struct):
    """An element of `groups`."""

    group_id: str = string()
    member_id: str | None = string(since=9, nullable_since=0, default=None, ignorable=True)
    member_epoch: int = int32(since=9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, nullable_since=0
    )


class OffsetFetchRequest(Message, api_key=9, versions=(1, 10), flexible_since=6):
    """Request of OffsetFetch."""

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, until=7, nullable_since=2
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


class OffsetFetchResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=5, default=-1, ignorable=True)
    metadata: str | None = string(nullable_since=0)
    error_code: int = int16()


class OffsetFetchResponseTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


class OffsetFetchResponsePartitions(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1)
    metadata: str | None = string(nullable_since=0)
    error_code: int = int16()


class OffsetFetchResponseTopics(Struct):
    """An element of `topics`."""

    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


class OffsetFetchResponseGroup(Struct):
    """An element of `groups`."""

    group_id: str = string()
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = int16()


class OffsetFetchResponse(Message, api_key=9, versions=(1, 10), flexible_since=6):
    """Response of OffsetFetch."""

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)

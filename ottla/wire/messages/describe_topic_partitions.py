"""DescribeTopicPartitions (API key 75): topics and partitions page by page, with eligible leader
replicas (KIP-966).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class TopicRequest(Struct):
    """An element of `topics`."""

    name: str = string()


class Cursor(Struct):
    """The value of `cursor`."""

    topic_name: str = string()
    partition_index: int = int32()


class DescribeTopicPartitionsRequest(Message, api_key=75, versions=(0, 0), flexible_since=0):
    """Request of DescribeTopicPartitions."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable_since=0, default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    """An element of `partitions`."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array(int32, nullable_since=0, default=None)
    last_known_elr: list[int] | None = array(int32, nullable_since=0, default=None)
    offline_replicas: list[int] = array(int32)


class DescribeTopicPartitionsResponseTopic(Struct):
    """An element of `topics`."""

    error_code: int = int16()
    name: str | None = string(nullable_since=0)
    topic_id: bytes = uuid()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=-0x80000000)


class DescribeTopicPartitionsResponse(Message, api_key=75, versions=(0, 0), flexible_since=0):
    """Response of DescribeTopicPartitions."""

    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable_since=0, default=None)

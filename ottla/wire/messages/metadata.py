"""Metadata (API key 3): brokers, topics, partitions and their leaders; may create topics.

Versions 0-13; what each one added:

    1     a null topic list asks for all topics; rack, controller id, internal flag in the response
    2     cluster id
    3     throttle time
    4     the client says whether topics may be created
    5     offline replicas
    7     leader epoch (KIP-320)
    8     authorized operations (KIP-430)
    9     flexible
    10    topic ids (KIP-516)
    11    cluster operations moved to DescribeCluster (KIP-700)
    12    a request may name a topic by its id only
    13    an error code for the whole response
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    """An element of `topics`."""

    topic_id: bytes = uuid(since=10, ignorable=True)
    name: str | None = string(nullable_since=10)


class MetadataRequest(Message, api_key=3, versions=(0, 13), flexible_since=9):
    """Request of Metadata."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


class MetadataResponseBroker(Struct):
    """An element of `brokers`."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable_since=0, default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    """An element of `partitions`."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, since=5, ignorable=True)


class MetadataResponseTopic(Struct):
    """An element of `topics`."""

    error_code: int = int16()
    name: str | None = string(nullable_since=12)
    topic_id: bytes = uuid(since=10, ignorable=True)
    is_internal: bool = boolean(since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=-0x80000000)


class MetadataResponse(Message, api_key=3, versions=(0, 13), flexible_since=9):
    """Response of Metadata."""

    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable_since=0, default=None, ignorable=True)
    controller_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=-0x80000000)
    error_code: int = int16(since=13, ignorable=True)

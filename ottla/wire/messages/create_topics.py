"""CreateTopics (API key 19): create topics, by size or by explicit replica assignment.

Versions 2-7; what each one added:

    2     throttle time
    4     -1 partitions or replicas: the broker's default (KIP-464)
    5     flexible; partitions, replicas and configs in the response (KIP-525)
    6     THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599)
    7     topic id in the response
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Struct):
    """An element of `assignments`."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


class CreatableTopicConfig(Struct):
    """An element of `configs`."""

    name: str = string()
    value: str | None = string(nullable_since=0)


class CreatableTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Message, api_key=19, versions=(2, 7), flexible_since=5):
    """Request of CreateTopics."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


class CreatableTopicConfigs(Struct):
    """An element of `configs`."""

    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()


class CreatableTopicResult(Struct):
    """An element of `topics`."""

    name: str = string()
    topic_id: bytes = uuid(since=7, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
    num_partitions: int = int32(since=5, default=-1, ignorable=True)
    replication_factor: int = int16(since=5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, since=5, nullable_since=0, ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions=(2, 7), flexible_since=5):
    """Response of CreateTopics."""

    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)

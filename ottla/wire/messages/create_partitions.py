"""CreatePartitions (API key 37): add partitions to topics.

Versions 0-3; what each one added:

    2     flexible
    3     THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """An element of `assignments`."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable_since=0
    )


class CreatePartitionsRequest(Message, api_key=37, versions=(0, 3), flexible_since=2):
    """Request of CreatePartitions."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Struct):
    """An element of `results`."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class CreatePartitionsResponse(Message, api_key=37, versions=(0, 3), flexible_since=2):
    """Response of CreatePartitions."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)

"""AlterPartitionReassignments (API key 45): move partitions to other replicas, or cancel that
(KIP-455).

Versions 0-1, flexible; what each one added:

    1     allow_replication_factor_change

Null `replicas` cancels a reassignment.
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, string


class ReassignablePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable_since=0, default=None)


class ReassignableTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions=(0, 1), flexible_since=0):
    """Request of AlterPartitionReassignments."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class ReassignableTopicResponse(Struct):
    """An element of `responses`."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions=(0, 1), flexible_since=0):
    """Response of AlterPartitionReassignments."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(since=1, default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)

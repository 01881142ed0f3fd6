"""ListPartitionReassignments (API key 46): reassignments under way (KIP-455).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    """An element of `topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(Message, api_key=46, versions=(0, 0), flexible_since=0):
    """Request of ListPartitionReassignments."""

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable_since=0, default=None
    )


class OngoingPartitionReassignment(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


class OngoingTopicReassignment(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Message, api_key=46, versions=(0, 0), flexible_since=0):
    """Response of ListPartitionReassignments."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)

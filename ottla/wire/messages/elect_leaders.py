"""ElectLeaders (API key 43): elect leaders for partitions: preferred, or unclean if none is in
sync.

Versions 0-2; what each one added:

    1     election type and error code for the whole response (KIP-460)
    2     flexible

Null `topic_partitions` means every partition.
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    """An element of `topic_partitions`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, api_key=43, versions=(0, 2), flexible_since=2):
    """Request of ElectLeaders."""

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable_since=0)
    timeout_ms: int = int32(default=60000)


class PartitionResult(Struct):
    """An element of `partition_result`."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class ReplicaElectionResult(Struct):
    """An element of `replica_election_results`."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, api_key=43, versions=(0, 2), flexible_since=2):
    """Response of ElectLeaders."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)

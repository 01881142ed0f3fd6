"""DescribeQuorum (API key 55): leader, voters and observers of the metadata log (KIP-595).

Versions 0-2, flexible; what each one added:

    1     the times of the last fetches (KIP-836)
    2     error messages, directory ids and the addresses of the controllers (KIP-853)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequestPartitionData(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()


class DescribeQuorumRequestTopicData(Struct):
    """An element of `topics`."""

    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartitionData] = array(DescribeQuorumRequestPartitionData)


class DescribeQuorumRequest(Message, api_key=55, versions=(0, 2), flexible_since=0):
    """Request of DescribeQuorum."""

    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData)


class ReplicaState(Struct):
    """An element of `current_voters`."""

    replica_id: int = int32()
    replica_directory_id: bytes = uuid(since=2)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(since=1, default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64(since=1, default=-1, ignorable=True)


class PartitionData(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(since=2, nullable_since=2, ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class TopicData(Struct):
    """An element of `topics`."""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class Listener(Struct):
    """An element of `listeners`."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class Node(Struct):
    """An element of `nodes`."""

    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Message, api_key=55, versions=(0, 2), flexible_since=0):
    """Response of DescribeQuorum."""

    error_code: int = int16()
    error_message: str | None = string(since=2, nullable_since=2, ignorable=True)
    topics: list[TopicData] = array(TopicData)
    nodes: list[Node] = array(Node, since=2)

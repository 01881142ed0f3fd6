"""StopReplica (API key 5): the controller has a broker stop replicas, and delete their logs.

Versions 3-4, flexible; what each one added:

    4     is_kraft_controller

Versions 0 to 2 are of brokers before Apache Kafka 2.6: they have no leader epochs (KIP-570). Apache
Kafka 4 has no ZooKeeper, and so does not have this API.
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class StopReplicaPartitionState(Struct):
    """An element of `partition_states`."""

    partition_index: int = int32()
    leader_epoch: int = int32(default=-1)
    delete_partition: bool = boolean()


class StopReplicaTopicState(Struct):
    """An element of `topic_states`."""

    topic_name: str = string()
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState)


class StopReplicaRequest(Message, api_key=5, versions=(3, 4), flexible_since=2):
    """Request of StopReplica."""

    controller_id: int = int32()
    is_kraft_controller: bool = boolean(since=4)
    controller_epoch: int = int32()
    broker_epoch: int = int64(default=-1)
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState)


class StopReplicaPartitionError(Struct):
    """An element of `partition_errors`."""

    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Message, api_key=5, versions=(3, 4), flexible_since=2):
    """Response of StopReplica."""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)

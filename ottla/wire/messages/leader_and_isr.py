"""LeaderAndIsr (API key 4): the controller sets leader, ISR and replicas of a broker's partitions.

Versions 5-7, flexible; what each one added:

    6     leader recovery state (KIP-704)
    7     is_kraft_controller

Versions 0 to 4 are of brokers before Apache Kafka 2.8: they have no topic ids. Apache Kafka 4 has
no ZooKeeper, and so does not have this API.
"""

from ottla.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class LeaderAndIsrPartitionState(Struct):
    """An element of `partition_states`."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    partition_epoch: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    is_new: bool = boolean()
    leader_recovery_state: int = int8(since=6)


class LeaderAndIsrTopicState(Struct):
    """An element of `topic_states`."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    """An element of `live_leaders`."""

    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Message, api_key=4, versions=(5, 7), flexible_since=4):
    """Request of LeaderAndIsr."""

    controller_id: int = int32()
    is_kraft_controller: bool = boolean(since=7)
    controller_epoch: int = int32()
    broker_epoch: int = int64(default=-1)
    type: int = int8()
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState)
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    """An element of `partition_errors`."""

    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    """An element of `topics`."""

    topic_id: bytes = uuid()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Message, api_key=4, versions=(5, 7), flexible_since=4):
    """Response of LeaderAndIsr."""

    error_code: int = int16()
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError)

"""AlterPartition (API key 56): a leader proposes an ISR to the controller (KIP-497).

Versions 2-3, flexible; what each one added:

    3     broker epochs of the proposed replicas (KIP-903)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    """An element of `new_isr_with_epochs`."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class PartitionData(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, until=2)
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, since=3)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


class TopicData(Struct):
    """An element of `topics`."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Message, api_key=56, versions=(2, 3), flexible_since=0):
    """Request of AlterPartition."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class AlterPartitionResponsePartitionData(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


class AlterPartitionResponseTopicData(Struct):
    """An element of `topics`."""

    topic_id: bytes = uuid()
    partitions: list[AlterPartitionResponsePartitionData] = array(
        AlterPartitionResponsePartitionData
    )


class AlterPartitionResponse(Message, api_key=56, versions=(2, 3), flexible_since=0):
    """Response of AlterPartition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData)

"""UpdateMetadata (API key 6): the controller informs a broker about brokers and partitions.

Versions 7-8, flexible; what each one added:

    8     is_kraft_controller, type

Versions 0 to 6 are of brokers before Apache Kafka 2.8: they have no topic ids. Apache Kafka 4 has
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


class UpdateMetadataPartitionState(Struct):
    """An element of `partition_states`."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    zk_version: int = int32()
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32)


class UpdateMetadataTopicState(Struct):
    """An element of `topic_states`."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    """An element of `endpoints`."""

    port: int = int32()
    host: str = string()
    listener: str = string()
    security_protocol: int = int16()


class UpdateMetadataBroker(Struct):
    """An element of `live_brokers`."""

    id: int = int32()
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint)
    rack: str | None = string(nullable_since=0)


class UpdateMetadataRequest(Message, api_key=6, versions=(7, 8), flexible_since=6):
    """Request of UpdateMetadata."""

    controller_id: int = int32()
    is_kraft_controller: bool = boolean(since=8)
    type: int = int8(since=8, tag=0, ignorable=True)
    controller_epoch: int = int32()
    broker_epoch: int = int64(default=-1)
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState)
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Message, api_key=6, versions=(7, 8), flexible_since=6):
    """Response of UpdateMetadata."""

    error_code: int = int16()

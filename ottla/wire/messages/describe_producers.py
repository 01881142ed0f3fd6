"""DescribeProducers (API key 61): the active producers of partitions (KIP-664).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    """An element of `topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class DescribeProducersRequest(Message, api_key=61, versions=(0, 0), flexible_since=0):
    """Request of DescribeProducers."""

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Struct):
    """An element of `active_producers`."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Message, api_key=61, versions=(0, 0), flexible_since=0):
    """Response of DescribeProducers."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)

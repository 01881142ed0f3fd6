"""Produce (API key 0): append record batches to partitions.

Versions 3-13; what each one added:

    3     transactional id; record batches of format v2
    4     KAFKA_STORAGE_ERROR may be returned
    5     log start offset in the response
    7     zstd is allowed (KIP-110)
    8     errors per record, error message (KIP-467)
    9     flexible
    10    current leader and its endpoint on NOT_LEADER_OR_FOLLOWER (KIP-951)
    11    TRANSACTION_ABORTABLE may be returned (KIP-890)
    12    implies AddPartitionsToTxn (KIP-890)
    13    topic ids instead of names (KIP-516)

`acks` is 0 (no response at all), 1 or -1 (all in-sync replicas).
"""

from ottla.base.buffers import Buffer
from ottla.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class PartitionProduceData(Struct):
    """An element of `partition_data`."""

    index: int = int32()
    records: Buffer | list[Buffer] | None = records()


class TopicProduceData(Struct):
    """An element of `topic_data`."""

    name: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, api_key=0, versions=(3, 13), flexible_since=9):
    """Request of Produce."""

    transactional_id: str | None = string(nullable_since=0, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    """An element of `record_errors`."""

    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable_since=0, default=None)


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader`."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    """An element of `partition_responses`."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1)
    log_start_offset: int = int64(since=5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, since=8, ignorable=True
    )
    error_message: str | None = string(since=8, nullable_since=0, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = nested(
        LeaderIdAndEpoch, since=10, tag=0, default=None
    )


class TopicProduceResponse(Struct):
    """An element of `responses`."""

    name: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    """An element of `node_endpoints`."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


class ProduceResponse(Message, api_key=0, versions=(3, 13), flexible_since=9):
    """Response of Produce."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)

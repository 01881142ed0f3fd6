"""Fetch (API key 1): read record batches from partitions, for consumers and followers.

Versions 4-18: 5 log start offset; 7 incremental sessions (KIP-227); 9 current leader epoch
(KIP-320); 10 zstd (KIP-110); 11 rack, preferred read replica (KIP-392); 12 flexible, last fetched
and diverging epoch (KIP-595), current leader; 13 topic ids (KIP-516); 14 error
OFFSET_MOVED_TO_TIERED_STORAGE; 15 replica state (KIP-903); 16 endpoints of leaders (KIP-951); 17
directory id (KIP-853); 18 high watermark that the follower knows (KIP-1166).
"""

from ottla.base.buffers import Buffer
from ottla.wire.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class ReplicaState(Struct):
    """The value of `replica_state`."""

    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


class FetchPartition(Struct):
    """An element of `partitions`."""

    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(since=17, tag=0, ignorable=True)
    high_watermark: int = int64(since=18, tag=1, default=0x7FFFFFFFFFFFFFFF, ignorable=True)


class FetchTopic(Struct):
    """An element of `topics`."""

    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """An element of `forgotten_topics_data`."""

    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[int] = array(int32)


class FetchRequest(Message, api_key=1, versions=(4, 18), flexible_since=12):
    """Request of Fetch."""

    cluster_id: str | None = string(since=12, nullable_since=0, tag=0, default=None, ignorable=True)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState | None = nested(ReplicaState, since=15, tag=1, default=None)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    isolation_level: int = int8()
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


class EpochEndOffset(Struct):
    """The value of `diverging_epoch`."""

    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader`."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class SnapshotId(Struct):
    """The value of `snapshot_id`."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


class AbortedTransaction(Struct):
    """An element of `aborted_transactions`."""

    producer_id: int = int64()
    first_offset: int = int64()


class PartitionData(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1)
    log_start_offset: int = int64(since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = nested(EpochEndOffset, since=12, tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = nested(
        LeaderIdAndEpoch, since=12, tag=1, default=None
    )
    snapshot_id: SnapshotId | None = nested(SnapshotId, since=12, tag=2, default=None)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, nullable_since=0
    )
    preferred_read_replica: int = int32(since=11, default=-1)
    records: Buffer | list[Buffer] | None = records()


class FetchableTopicResponse(Struct):
    """An element of `responses`."""

    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """An element of `node_endpoints`."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)


class FetchResponse(Message, api_key=1, versions=(4, 18), flexible_since=12):
    """Response of Fetch."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)

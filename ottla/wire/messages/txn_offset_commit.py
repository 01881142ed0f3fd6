"""TxnOffsetCommit (API key 28): store the offsets of a group as part of a transaction.

Versions 0-5; what each one added:

    2     leader epoch (KIP-320)
    3     flexible; member, generation and instance, checked (KIP-447)
    4     TRANSACTION_ABORTABLE may be returned (KIP-890)
    5     implies AddOffsetsToTxn (KIP-890)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=2, default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable_since=0)


class TxnOffsetCommitRequestTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, api_key=28, versions=(0, 5), flexible_since=3):
    """Request of TxnOffsetCommit."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=-1)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable_since=0, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class TxnOffsetCommitResponseTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, api_key=28, versions=(0, 5), flexible_since=3):
    """Response of TxnOffsetCommit."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)

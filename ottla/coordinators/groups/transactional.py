"""TxnOffsetCommit: offsets that take effect when their transaction is committed (KIP-447).

The member and its generation are checked if the client sends them, so that a member that lost its
partitions cannot commit for them. Follows OffsetMetadataManager.commitTransactionalOffset.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.consumer.requests import committing
from ottla.coordinators.consumer.state import Member as ConsumerMember
from ottla.coordinators.groups.offsets import CommittedOffset, TopicPartition
from ottla.coordinators.groups.records import Change, OffsetCommit
from ottla.coordinators.groups.shard import GroupShard
from ottla.coordinators.ports import TransactionalProducer
from ottla.coordinators.runtime import Decision
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def commit(shard: GroupShard, request: TxnOffsetCommitRequest) -> Decision[TxnOffsetCommitResponse]:
    """Decide a TxnOffsetCommit; raises ApiError if no offset may be stored."""
    late = _check(shard, request)
    longest = shard.settings.offset_metadata_bytes_max
    now_ms = shard.now_ms()
    # Only the last offset of a partition counts if it is named twice.
    changes: dict[TopicPartition, Change] = {}
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        topic_response = TxnOffsetCommitResponseTopic(name=topic.name)
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            is_too_long = len(metadata) > longest
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE
            topic_response.partitions.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
            if is_too_long:
                continue
            offset = CommittedOffset(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms
            )
            topic_partition = (topic.name, partition.partition_index)
            if late is not None:
                _check_late(shard, late, request, topic_partition)
            changes[topic_partition] = OffsetCommit(request.group_id, topic_partition, offset)
        response.topics.append(topic_response)
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    return Decision(shard.encode(changes.values()), response, producer)


def _check(shard: GroupShard, request: TxnOffsetCommitRequest) -> ConsumerMember | None:
    """Raise ApiError if no offset may be stored; return a member that may store only some."""
    consumers = shard.consumers.get(request.group_id)
    if consumers is None:
        check_commit(shard.group(request.group_id), request)
        return None
    committer = committing.Committer(
        request.member_id, request.group_instance_id, request.generation_id, api_version=None
    )
    with _as_generation():
        return committing.check_commit(consumers, committer)


def _check_late(
    shard: GroupShard,
    late: ConsumerMember,
    request: TxnOffsetCommitRequest,
    topic_partition: TopicPartition,
) -> None:
    topic = shard.image.topic(topic_partition[0])
    topic_id = b"" if topic is None else topic.topic_id
    with _as_generation():
        committing.check_partition(late, request.generation_id, (topic_id, topic_partition[1]))


@contextmanager
def _as_generation() -> Iterator[None]:
    """Convert the error for a stale epoch to one that clients of this request understand."""
    try:
        yield
    except ApiError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION) from error
        raise


def check_commit(group: Group | None, request: TxnOffsetCommitRequest) -> None:
    """Raise ApiError unless the member, or a client that sends no member id, may commit."""
    generation = request.generation_id
    if group is None:
        if generation >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return
    if generation < 0 and group.state is GroupState.EMPTY:
        return
    is_member = generation >= 0 or request.member_id or request.group_instance_id is not None
    if not is_member:
        # A producer from before KIP-447, which is fenced by its transactional id alone.
        return
    code = group.identity_error(request.member_id, request.group_instance_id)
    if code is ErrorCode.NONE and generation != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    if code is not ErrorCode.NONE:
        raise ApiError(code)


def refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Return a response with `code` for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )

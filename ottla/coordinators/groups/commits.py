"""OffsetCommit and OffsetFetch of one group: checks, stored records, responses.

Topics are identified by name here; `server/handlers` converts topic ids to names and back. Follows
Kafka's OffsetMetadataManager and ClassicGroup.validateOffsetCommit.
"""

from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.classic.events import Touch
from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.consumer.requests import committing
from ottla.coordinators.consumer.state import Member as ConsumerMember
from ottla.coordinators.groups.offsets import (
    NO_EXPIRY,
    NO_OFFSET,
    CommittedOffset,
    TopicPartition,
)
from ottla.coordinators.groups.records import OffsetCommit
from ottla.coordinators.groups.shard import AnyChange, GroupShard
from ottla.coordinators.runtime import Decision
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_GENERATION = -1
# KIP-848: from this version on a group that does not exist has a separate error.
GROUP_ERROR_VERSION = 9


def commit(
    shard: GroupShard, request: OffsetCommitRequest, api_version: int
) -> Decision[OffsetCommitResponse]:
    """Decide an OffsetCommit; raises ApiError if no offset may be stored."""
    late = _check(shard, request, api_version)
    # Only the last offset of a partition counts if it is named twice.
    changes: dict[TopicPartition, AnyChange] = {}
    response = OffsetCommitResponse()
    for topic in request.topics:
        topic_response = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            code = _commit_error(shard, partition)
            if code is ErrorCode.NONE:
                topic_partition = (topic.name, partition.partition_index)
                if late is not None:
                    _check_late(shard, late, request, topic_partition)
                offset = _committed(shard, request, partition)
                changes[topic_partition] = OffsetCommit(request.group_id, topic_partition, offset)
            topic_response.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        response.topics.append(topic_response)
    return Decision(shard.encode(changes.values()), response)


def _check(
    shard: GroupShard, request: OffsetCommitRequest, api_version: int
) -> ConsumerMember | None:
    """Raise ApiError if no offset may be stored; return a member that may store only some."""
    consumers = shard.consumers.get(request.group_id)
    if consumers is None:
        check_commit(shard.group(request.group_id), request, api_version)
        shard.feed(request.group_id, Touch(request.member_id))
        return None
    committer = committing.Committer(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        api_version,
    )
    return committing.check_commit(consumers, committer)


def _check_late(
    shard: GroupShard,
    late: ConsumerMember,
    request: OffsetCommitRequest,
    topic_partition: TopicPartition,
) -> None:
    topic = shard.image.topic(topic_partition[0])
    topic_id = b"" if topic is None else topic.topic_id
    committing.check_partition(
        late, request.generation_id_or_member_epoch, (topic_id, topic_partition[1])
    )


def check_commit(group: Group | None, request: OffsetCommitRequest, api_version: int) -> None:
    """Raise ApiError unless this member, or a client without a membership, may commit."""
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            # A client that only stores offsets; its first commit creates the group.
            return
        is_new = api_version >= GROUP_ERROR_VERSION
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
    if generation < 0 and group.state is GroupState.EMPTY:
        return
    is_member = generation >= 0 or request.member_id or request.group_instance_id is not None
    if not is_member:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    code = group.identity_error(request.member_id, request.group_instance_id)
    if code is ErrorCode.NONE and generation != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    if code is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
        # The member has its generation, but partitions may already be moving to another member.
        code = ErrorCode.REBALANCE_IN_PROGRESS
    if code is not ErrorCode.NONE:
        raise ApiError(code)


def _commit_error(shard: GroupShard, partition: OffsetCommitRequestPartition) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    # Characters, in spite of the option's name, as in Kafka.
    if len(metadata) > shard.settings.offset_metadata_bytes_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committed(
    shard: GroupShard, request: OffsetCommitRequest, partition: OffsetCommitRequestPartition
) -> CommittedOffset:
    now_ms = shard.now_ms()
    has_expiry = request.retention_time_ms >= 0
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=now_ms + request.retention_time_ms if has_expiry else NO_EXPIRY,
    )


def refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Return a response with `code` for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetch(
    shard: GroupShard, request: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Decide an OffsetFetch of one group; an unknown group has no offsets.

    Raises ApiError if a member of the consumer protocol sends an epoch that is not its own.
    """
    group_id = request.group_id
    consumers = shard.consumers.get(group_id)
    if consumers is not None:
        committing.check_fetch(consumers, request.member_id, request.member_epoch)
    if request.topics is None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in shard.offsets.of_group(group_id):
            by_topic.setdefault(topic, []).append(partition)
        topics: Iterable[tuple[str, bytes, list[int]]] = [
            (name, bytes(16), partitions) for name, partitions in by_topic.items()
        ]
    else:
        topics = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    return OffsetFetchResponseGroup(
        group_id=group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic_id,
                partitions=[
                    _fetched(shard, group_id, (name, partition), require_stable=require_stable)
                    for partition in partitions
                ],
            )
            for name, topic_id, partitions in topics
        ],
    )


def _fetched(
    shard: GroupShard, group_id: str, topic_partition: TopicPartition, *, require_stable: bool
) -> OffsetFetchResponsePartitions:
    response = OffsetFetchResponsePartitions(
        partition_index=topic_partition[1], committed_offset=NO_OFFSET, metadata=""
    )
    if require_stable and shard.offsets.is_unstable(group_id, topic_partition):
        response.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
        return response
    committed = shard.offsets.of_group(group_id).get(topic_partition)
    if committed is not None:
        response.committed_offset = committed.offset
        response.committed_leader_epoch = committed.leader_epoch
        response.metadata = committed.metadata
    return response

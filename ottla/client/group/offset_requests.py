"""Requests to a group's coordinator that commit and look up offsets (OffsetCommit, OffsetFetch)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.admin.offsets import COMMIT_VERSION_MAX, CommittedOffset, commit_request
from ottla.client.brokers import PASSING, Brokers
from ottla.client.group.identities import Identity
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.wire.messages.offset_commit import OffsetCommitResponse
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

Offsets = Mapping[TopicPartition, tuple[int, str]]
"""Offsets to commit, with their metadata."""

# Later versions ask for several groups.
_FETCH_VERSION_MAX = 7


def commit_offsets(brokers: Brokers, group_id: str, identity: Identity, offsets: Offsets) -> int:
    """Commit once; return the first error code, or 0. A transient error is an ApiError.

    Raises NotReachable and TimedOut.
    """
    committed = {
        (topic, partition): CommittedOffset(offset, metadata=metadata)
        for (topic, partition), (offset, metadata) in offsets.items()
    }
    request = commit_request(group_id, committed)
    request.generation_id_or_member_epoch = identity.generation
    request.member_id = identity.member_id
    request.group_instance_id = identity.instance_id
    response = brokers.ask_coordinator(
        group_id, request, OffsetCommitResponse, max_version=COMMIT_VERSION_MAX
    )
    codes = [row.error_code for topic in response.topics for row in topic.partitions]
    code = next(filter(None, codes), 0)
    if code in PASSING:
        raise ApiError(ErrorCode(code))
    return int(code)


def fetch_offsets(
    brokers: Brokers, group_id: str, keys: Iterable[TopicPartition], *, require_stable: bool
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of partitions; those without one are missing.

    `require_stable` waits for open transactions (KIP-447). Raises ApiError, NotReachable and
    TimedOut.
    """
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in keys:
        by_topic[topic].append(partition)
    request = OffsetFetchRequest(
        group_id=group_id,
        topics=[
            OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic.items()
        ],
        require_stable=require_stable,
    )
    response = brokers.ask_coordinator(
        group_id, request, OffsetFetchResponse, max_version=_FETCH_VERSION_MAX
    )
    check(response.error_code, subject=f"Group {group_id!r}")
    offsets = {}
    for row in response.topics:
        for found in row.partitions:
            key = TopicPartition(row.name, found.partition_index)
            check(found.error_code, subject=f"Group {group_id!r}, {key}")
            if found.committed_offset >= 0:
                offsets[key] = OffsetAndMetadata(found.committed_offset, found.metadata or "")
    return offsets

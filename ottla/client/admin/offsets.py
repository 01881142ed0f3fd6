"""Offsets: starts and ends of partitions, offsets by time, committed offsets (ListOffsets,
OffsetFetch, OffsetCommit).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check, check_leader, error_of
from ottla.client.brokers import Brokers
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

TopicPartition = tuple[str, int]

# Timestamps with a special meaning in ListOffsets (KIP-79, KIP-734).
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3

PROGRESS = "ottla-progress"
"""The metadata of offsets that show how far an application of ottla.streams is: it does not start
there.
"""

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_FROM_A_CLIENT = -1
# Topics have names, and not ids, in all versions up to this one.
COMMIT_VERSION_MAX = 9


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """A result of ListOffsets; -1 and -1 if every record is older than the timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The committed offset of a group in a partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def list_offsets(
    brokers: Brokers,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
    omits_unknown: bool = False,
) -> dict[TopicPartition, FoundOffset]:
    """Return for each partition the first offset at or after its timestamp (ms, LATEST, EARLIEST…).

    LATEST is where consumers can read up to: the high watermark, or with READ_COMMITTED the last
    stable offset. A new leader does not know it while fewer than min.insync.replicas are in sync:
    with `omits_unknown` the result lacks that partition, without it the call retries.
    """

    def attempt() -> dict[TopicPartition, FoundOffset]:
        leaders = brokers.leaders(list(timestamps))
        requests = list_offsets_requests(leaders, timestamps, isolation_level)
        offsets: dict[TopicPartition, FoundOffset] = {}
        for response in brokers.ask_nodes(requests, ListOffsetsResponse).values():
            offsets.update(_found_offsets(response, omits_unknown=omits_unknown))
        keys = [key for key in timestamps if key in offsets or not omits_unknown]
        return {key: offsets[key] for key in keys}

    return brokers.retry(attempt)


def offsets_at(
    brokers: Brokers, partitions: Sequence[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    """Return the first offset at or after a timestamp; the end if every record is older."""
    offsets = list_offsets(brokers, dict.fromkeys(partitions, max(timestamp_ms, 0)))
    late = [key for key, found_offset in offsets.items() if found_offset.offset < 0]
    ends = list_offsets(brokers, dict.fromkeys(late, LATEST)) if late else {}
    return {key: ends.get(key, found_offset).offset for key, found_offset in offsets.items()}


def committed_offsets(
    brokers: Brokers, group_id: str, *, require_stable: bool = True
) -> dict[TopicPartition, CommittedOffset]:
    """Return all committed offsets of a group; empty if the group does not exist.

    Waits for open transactions unless `require_stable` is False (KIP-447).
    """
    # Version 7 requests one group by name; later ones batch groups and use topic ids.
    request = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=require_stable)

    def attempt() -> dict[TopicPartition, CommittedOffset]:
        response = brokers.ask_coordinator(group_id, request, OffsetFetchResponse, max_version=7)
        check(response.error_code, subject=f"Group {group_id!r}")
        offsets = {}
        for topic in response.topics:
            for row in topic.partitions:
                check(row.error_code, subject=f"Group {group_id!r}, {topic.name}")
                offsets[topic.name, row.partition_index] = CommittedOffset(
                    row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                )
        return dict(sorted(offsets.items()))

    return brokers.retry(attempt)


def commit_offsets(
    brokers: Brokers, group_id: str, committed: Mapping[TopicPartition, CommittedOffset]
) -> None:
    """Commit offsets for a group without members; ApiError UNKNOWN_MEMBER_ID if it has some."""
    request = commit_request(group_id, committed)

    def attempt() -> None:
        response = brokers.ask_coordinator(
            group_id, request, OffsetCommitResponse, max_version=COMMIT_VERSION_MAX
        )
        for topic in response.topics:
            for row in topic.partitions:
                subject = f"Group {group_id!r}, {topic.name}-{row.partition_index}"
                check(row.error_code, subject=subject)

    brokers.retry(attempt)


def commit_request(
    group_id: str, committed: Mapping[TopicPartition, CommittedOffset]
) -> OffsetCommitRequest:
    """Return the request without a membership, which only an empty group accepts."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), value in committed.items():
        by_topic[topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=value.offset,
                committed_leader_epoch=value.leader_epoch,
                committed_metadata=value.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in by_topic.items()
        ],
    )


def list_offsets_requests(
    leaders: Mapping[TopicPartition, int],
    timestamps: Mapping[TopicPartition, int] | int,
    isolation_level: int,
) -> dict[int, ListOffsetsRequest]:
    """Return the request to each leader, for one timestamp or one of each partition."""
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(
        lambda: defaultdict(list)
    )
    # Equal rows of different topics are one object.
    rows: dict[tuple[int, int], ListOffsetsPartition] = {}
    for key, leader in leaders.items():
        timestamp = timestamps if isinstance(timestamps, int) else timestamps[key]
        row = rows.get((key[1], timestamp))
        if row is None:
            row = rows[key[1], timestamp] = ListOffsetsPartition(
                partition_index=key[1], timestamp=timestamp
            )
        by_leader[leader][key[0]].append(row)
    return {
        leader: ListOffsetsRequest(
            replica_id=_FROM_A_CLIENT,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
        )
        for leader, topics in by_leader.items()
    }


def _found_offsets(
    response: ListOffsetsResponse, *, omits_unknown: bool
) -> dict[TopicPartition, FoundOffset]:
    offsets = {}
    for topic in response.topics:
        for row in topic.partitions:
            if omits_unknown and row.error_code == ErrorCode.OFFSET_NOT_AVAILABLE:
                continue
            check_leader(row.error_code, subject=f"{topic.name}-{row.partition_index}")
            offsets[topic.name, row.partition_index] = FoundOffset(
                row.offset, row.timestamp, row.leader_epoch
            )
    return offsets


def delete_group_offsets(
    brokers: Brokers, group_id: str, partitions: Iterable[TopicPartition]
) -> None:
    """Delete committed offsets of a group (KIP-496); ApiError if it is subscribed to the topic."""

    def attempt() -> None:
        results = _delete_group_offsets(brokers, request, subject=f"Group {group_id!r}")
        for (topic, partition), error in results.items():
            if error is not None:
                raise ApiError(error.code, subject=f"Group {group_id!r}, {topic}-{partition}")

    request = _offset_delete_request(group_id, partitions)
    brokers.retry(attempt)


def try_offset_deletions(
    brokers: Brokers, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ApiError | None]:
    """Delete committed offsets as `delete_group_offsets` does; return None or the error of each
    partition.
    """
    request = _offset_delete_request(group_id, partitions)
    return brokers.retry(lambda: _delete_group_offsets(brokers, request))


def _offset_delete_request(
    group_id: str, partitions: Iterable[TopicPartition]
) -> OffsetDeleteRequest:
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=rows) for name, rows in by_topic.items()
        ],
    )


def _delete_group_offsets(
    brokers: Brokers, request: OffsetDeleteRequest, *, subject: str = ""
) -> dict[TopicPartition, ApiError | None]:
    response = brokers.ask_coordinator(request.group_id, request, OffsetDeleteResponse)
    check(response.error_code, subject=subject)
    return {
        (topic.name, row.partition_index): error_of(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }

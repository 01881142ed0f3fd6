"""Offsets of partitions and of groups."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import offsets
from ottla.client.admin.offsets import CommittedOffset
from ottla.client.brokers import Brokers
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


def _list_offsets(request: Any) -> ListOffsetsResponse:
    """Respond as a log of ten records with the timestamps 100, 101… ms."""

    def find(timestamp: int) -> tuple[int, int]:
        if timestamp < 0:
            return {-1: 10, -2: 0}[timestamp], -1
        return (timestamp - 100, timestamp) if timestamp < 110 else (-1, -1)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=row.partition_index,
                        offset=find(row.timestamp)[0],
                        timestamp=find(row.timestamp)[1],
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_each_partition_has_its_own_timestamp(cluster: Any, brokers: Brokers) -> None:
    """One call can look up ends, starts and times."""
    cluster.answers["ListOffsets"] = _list_offsets
    listed = offsets.list_offsets(brokers, {("t", 0): offsets.LATEST, ("t", 1): offsets.EARLIEST})
    assert {key: row.offset for key, row in listed.items()} == {("t", 0): 10, ("t", 1): 0}


@pytest.mark.parametrize(("moment", "offset"), [(103, 3), (110, 10)])
def test_time_after_every_record_is_the_log_end(
    cluster: Any, brokers: Brokers, moment: int, offset: int
) -> None:
    """The broker returns -1, which is no valid start offset."""
    cluster.answers["ListOffsets"] = _list_offsets
    assert offsets.offsets_at(brokers, [("t", 0)], moment) == {("t", 0): offset}


def test_committed_offsets_are_read_with_their_metadata(cluster: Any, brokers: Brokers) -> None:
    """All committed offsets are returned, ordered by topic and partition."""
    cluster.answers["OffsetFetch"] = lambda request: OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    OffsetFetchResponsePartition(partition_index=1, committed_offset=7),
                    OffsetFetchResponsePartition(
                        partition_index=0, committed_offset=5, metadata="m"
                    ),
                ],
            )
        ]
    )
    assert offsets.committed_offsets(brokers, "g") == {
        ("t", 0): CommittedOffset(5, -1, "m"),
        ("t", 1): CommittedOffset(7, -1, ""),
    }


def test_commit_of_a_tool_has_no_generation(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The coordinator distinguishes a tool from a member by the missing generation."""
    cluster.answers["OffsetCommit"] = lambda request: OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="t", partitions=[OffsetCommitResponsePartition(partition_index=0)]
            )
        ]
    )
    offsets.commit_offsets(brokers, "g", {("t", 0): CommittedOffset(3)})
    sent = asked("OffsetCommit")
    assert (sent.generation_id_or_member_epoch, sent.member_id) == (-1, "")
    assert sent.topics[0].partitions[0].committed_offset == 3


def test_rejected_commit_names_group_and_partition(cluster: Any, brokers: Brokers) -> None:
    """A group with members rejects commits from other clients."""
    cluster.answers["OffsetCommit"] = lambda request: OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="t",
                partitions=[OffsetCommitResponsePartition(partition_index=0, error_code=25)],
            )
        ]
    )
    with pytest.raises(ApiError, match="Group 'g', t-0") as caught:
        offsets.commit_offsets(brokers, "g", {("t", 0): CommittedOffset(3)})
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_offsets_are_looked_up_again_with_fresh_metadata(
    cluster: Any, brokers: Brokers, code: ErrorCode
) -> None:
    """A leader may not know its partition yet, or not lead it any more."""
    answers = iter([_refused(code), _refused(code), _list_offsets])
    cluster.answers["ListOffsets"] = lambda request: next(answers)(request)
    listed = offsets.list_offsets(brokers, {("t", 0): offsets.LATEST})
    assert listed["t", 0].offset == 10
    assert cluster.names() == ["Metadata", "ListOffsets"] * 3


def test_lookup_of_an_unknown_topic_is_not_repeated(cluster: Any, brokers: Brokers) -> None:
    """The metadata says that no topic has this name: that is a result."""
    missing = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="unknown")
    cluster.answers["Metadata"] = lambda request: MetadataResponse(topics=[missing])
    with pytest.raises(ApiError, match="There is no topic 'unknown'"):
        offsets.list_offsets(brokers, {("unknown", 0): offsets.LATEST})
    assert cluster.names() == ["Metadata"]


def _refused(code: ErrorCode) -> Callable[[Any], ListOffsetsResponse]:
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=code)
    return lambda request: ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="t", partitions=[row])]
    )

"""Share groups: their members and the offsets from which they share records (KIP-932).

`admin.groups` lists and deletes them like other groups.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.acls import AclOperation, operations_of
from ottla.client.admin.answers import check, error_of
from ottla.client.brokers import Brokers
from ottla.wire.messages import alter_share_group_offsets as altering
from ottla.wire.messages import delete_share_group_offsets as deleting
from ottla.wire.messages import describe_share_group_offsets as describing
from ottla.wire.messages import share_group_describe as group_describing

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member and the partitions that it shares with other members."""

    member_id: str
    rack_id: str | None
    client_id: str
    host: str
    member_epoch: int
    assignment: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group with its members."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMember, ...]
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The first offset of a partition that is not completely processed; -1 for unknown values."""

    start_offset: int
    leader_epoch: int
    lag: int


def describe_share_group(
    brokers: Brokers, group_id: str, *, include_authorized_operations: bool = False
) -> ShareGroup:
    """Return a share group with its members (KIP-932); ApiError GROUP_ID_NOT_FOUND."""
    request = group_describing.ShareGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=include_authorized_operations
    )

    def attempt() -> ShareGroup:
        response = brokers.ask_coordinator(
            group_id, request, group_describing.ShareGroupDescribeResponse
        )
        (group,) = response.groups
        check(group.error_code, group.error_message, subject=f"Group {group_id!r}")
        return ShareGroup(
            group_id=group_id,
            state=group.group_state,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor=group.assignor_name,
            members=tuple(_member(row) for row in group.members),
            authorized_operations=operations_of(group.authorized_operations),
        )

    return brokers.retry(attempt)


def list_share_group_offsets(
    brokers: Brokers, group_id: str, partitions: Iterable[Key] | None = None
) -> dict[Key, ShareOffset]:
    """Return the start offsets of these partitions, or of all that the group has consumed.

    A partition that the group has not consumed is left out; empty if the group does not exist.
    """
    offsets = {}
    for (topic, partition), row in _described(brokers, group_id, partitions).items():
        subject = f"Group {group_id!r}, {topic}-{partition}"
        check(row.error_code, row.error_message, subject=subject)
        if row.start_offset >= 0:
            offsets[topic, partition] = _share_offset(row)
    return dict(sorted(offsets.items()))


def subscribed_share_group_offsets(
    brokers: Brokers, group_id: str
) -> dict[Key, ShareOffset | None]:
    """Return the start offsets of all partitions of a group; None for one without an offset.

    A partition whose offset cannot be read is left out.
    """
    return {
        key: _share_offset(row) if row.start_offset >= 0 else None
        for key, row in _described(brokers, group_id, None).items()
        if row.error_code == ErrorCode.NONE
    }


def _share_offset(row: describing.DescribeShareGroupOffsetsResponsePartition) -> ShareOffset:
    return ShareOffset(row.start_offset, row.leader_epoch, row.lag)


def _described(
    brokers: Brokers, group_id: str, partitions: Iterable[Key] | None
) -> dict[Key, describing.DescribeShareGroupOffsetsResponsePartition]:
    topics = None
    if partitions is not None:
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            by_topic[topic].append(partition)
        topics = [
            describing.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=rows)
            for name, rows in by_topic.items()
        ]
    asked = describing.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)
    request = describing.DescribeShareGroupOffsetsRequest(groups=[asked])

    def attempt() -> dict[Key, describing.DescribeShareGroupOffsetsResponsePartition]:
        response = brokers.ask_coordinator(
            group_id, request, describing.DescribeShareGroupOffsetsResponse
        )
        (group,) = response.groups
        check(group.error_code, group.error_message, subject=f"Group {group_id!r}")
        return {
            (topic.topic_name, row.partition_index): row
            for topic in group.topics
            for row in topic.partitions
        }

    return brokers.retry(attempt)


def alter_share_group_offsets(
    brokers: Brokers, group_id: str, start_offsets: Mapping[Key, int]
) -> None:
    """Set start offsets of a group without members, which is created if it does not exist.

    ApiError NON_EMPTY_GROUP if the group has members.
    """
    by_topic: dict[str, list[altering.AlterShareGroupOffsetsRequestPartition]] = defaultdict(list)
    for (topic, partition), offset in start_offsets.items():
        by_topic[topic].append(
            altering.AlterShareGroupOffsetsRequestPartition(
                partition_index=partition, start_offset=offset
            )
        )
    request = altering.AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            altering.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=rows)
            for name, rows in by_topic.items()
        ],
    )

    def attempt() -> None:
        response = brokers.ask_coordinator(
            group_id, request, altering.AlterShareGroupOffsetsResponse
        )
        check(response.error_code, response.error_message, subject=f"Group {group_id!r}")
        for topic in response.responses:
            for row in topic.partitions:
                subject = f"Group {group_id!r}, {topic.topic_name}-{row.partition_index}"
                check(row.error_code, row.error_message, subject=subject)

    brokers.retry(attempt)


def delete_share_group_offsets(brokers: Brokers, group_id: str, topics: Iterable[str]) -> None:
    """Delete the state of topics in a group without members; it consumes them from the beginning
    or the end again, as its option share.auto.offset.reset says.

    ApiError NON_EMPTY_GROUP if the group has members, GROUP_ID_NOT_FOUND if it does not exist.
    """
    for topic, error in share_offset_deletions(brokers, group_id, topics).items():
        if error is not None:
            subject = f"Group {group_id!r}, {topic}"
            raise ApiError(error.code, error.message, subject=subject) from error


def share_offset_deletions(
    brokers: Brokers, group_id: str, topics: Iterable[str]
) -> dict[str, ApiError | None]:
    """Delete the state of topics like `delete_share_group_offsets`; return the error of each topic,
    None on success.
    """
    request = deleting.DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )

    def attempt() -> dict[str, ApiError | None]:
        response = brokers.ask_coordinator(
            group_id, request, deleting.DeleteShareGroupOffsetsResponse
        )
        check(response.error_code, response.error_message, subject=f"Group {group_id!r}")
        return {
            row.topic_name: error_of(row.error_code, row.error_message)
            for row in response.responses
        }

    return brokers.retry(attempt)


def _member(row: group_describing.Member) -> ShareMember:
    return ShareMember(
        member_id=row.member_id,
        rack_id=row.rack_id,
        client_id=row.client_id,
        host=row.client_host.lstrip("/"),
        member_epoch=row.member_epoch,
        assignment=tuple(
            sorted(
                (topic.topic_name, partition)
                for topic in row.assignment.topic_partitions
                for partition in topic.partitions
            )
        ),
    )

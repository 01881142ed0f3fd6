"""Describing, listing and deleting groups: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete."""

from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.classic.state import Group, GroupState, Member
from ottla.coordinators.groups import migration
from ottla.coordinators.groups.records import GroupMetadata, OffsetCommit
from ottla.coordinators.groups.shard import AnyChange, GroupShard
from ottla.coordinators.runtime import Decision
from ottla.wire.consumer_protocol import PROTOCOL_TYPE
from ottla.wire.messages.delete_groups import DeletableGroupResult
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.list_groups import ListedGroup
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

CLASSIC = "classic"
CONSUMER = "consumer"
# KIP-1043: from this version on a group that does not exist is an error, not a dead group.
NOT_FOUND_VERSION = 6


def describe(shard: GroupShard, group_id: str, api_version: int) -> DescribedGroup:
    """Describe a group; subscriptions are included only for a stable one, as in Kafka."""
    group = shard.group(group_id)
    if group is None:
        is_other = shard.consumers.get(group_id) is not None
        return _not_found(group_id, api_version, is_other=is_other)
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[_described(group, member) for member in group.members.values()],
    )


def _not_found(group_id: str, api_version: int, *, is_other: bool) -> DescribedGroup:
    described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if api_version >= NOT_FOUND_VERSION:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        reason = "is not a classic group" if is_other else "not found"
        described.error_message = f"Group {group_id} {reason}."
    return described


def _described(group: Group, member: Member) -> DescribedGroupMember:
    is_stable = group.state is GroupState.STABLE
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols[group.protocol_name or ""] if is_stable else b"",
        member_assignment=member.assignment,
    )


def listed(shard: GroupShard, states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """List the groups in these states and of these types; an empty filter matches all groups."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    groups: list[ListedGroup] = []
    if not wanted_types or CLASSIC in wanted_types:
        groups += [
            _listed(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
            for group in shard.groups()
        ]
    if not wanted_types or CONSUMER in wanted_types:
        groups += [
            _listed(group.group_id, PROTOCOL_TYPE, group.state.value, CONSUMER)
            for group in shard.consumers
        ]
    return [
        group for group in groups if not wanted_states or group.group_state.lower() in wanted_states
    ]


def _listed(group_id: str, protocol_type: str, state: str, kind: str) -> ListedGroup:
    return ListedGroup(
        group_id=group_id, protocol_type=protocol_type, group_state=state, group_type=kind
    )


def delete(shard: GroupShard, group_id: str) -> Decision[DeletableGroupResult]:
    """Delete an empty group with its offsets."""
    consumers = shard.consumers.get(group_id)
    group = shard.group(group_id)
    if group is None and consumers is None:
        return Decision([], _deleted(group_id, ErrorCode.GROUP_ID_NOT_FOUND))
    is_used = group is not None and not _is_empty(group)
    if is_used or (consumers is not None and consumers.members):
        return Decision([], _deleted(group_id, ErrorCode.NON_EMPTY_GROUP))
    changes: list[AnyChange] = [
        OffsetCommit(group_id, topic_partition, None)
        for topic_partition in shard.offsets.partitions(group_id)
    ]
    if consumers is None:
        changes.append(GroupMetadata(group_id, None))
    else:
        changes += migration.tombstones(consumers)
    return Decision(shard.encode(changes), _deleted(group_id, ErrorCode.NONE))


def _deleted(group_id: str, code: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=code)


def delete_offsets(
    shard: GroupShard, request: OffsetDeleteRequest
) -> Decision[OffsetDeleteResponse]:
    """Delete offsets of topics without subscribers; ApiError if the group allows no deletion."""
    group = shard.consumers.get(request.group_id) or shard.group(request.group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
    # Subscriptions are known only of consumers.
    if isinstance(group, Group) and not (group.is_consumer_group or _is_empty(group)):
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    stored = set(shard.offsets.partitions(request.group_id))
    response = OffsetDeleteResponse()
    changes: list[AnyChange] = []
    for topic in request.topics:
        is_read = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        response.topics.append(answered_topic(topic, code))
        partitions = {(topic.name, partition.partition_index) for partition in topic.partitions}
        if not is_read:
            deleted = sorted(partitions & stored)
            changes += [
                OffsetCommit(request.group_id, topic_partition, None) for topic_partition in deleted
            ]
    return Decision(shard.encode(changes), response)


def _is_empty(group: Group) -> bool:
    return group.state is GroupState.EMPTY


def answered_topic(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    """Return a response with `code` for every partition of the topic."""
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )

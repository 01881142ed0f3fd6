"""Requests of members that use the consumer protocol (KIP-848), decided for one shard.

Each name has one group. An empty group of either protocol is replaced by one of the other; a group
with members is converted if the migration policy allows it.
"""

import logging

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.classic.state import GroupState
from ottla.coordinators.consumer.changes import GroupChange
from ottla.coordinators.consumer.requests import classic, describing, heartbeat
from ottla.coordinators.consumer.requests.fencing import leave_temporarily, leaving
from ottla.coordinators.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    ConsumerGroup,
    Member,
)
from ottla.coordinators.consumer.transition import Client, Deadline, SetTimer, Transition
from ottla.coordinators.groups import migration
from ottla.coordinators.groups.records import GroupMetadata
from ottla.coordinators.groups.shard import GroupShard
from ottla.coordinators.runtime import Decision
from ottla.wire.messages.consumer_group_describe import DescribedGroup
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_log = logging.getLogger(__name__)

_LEAVING = (LEAVING_EPOCH, AWAY_EPOCH)


def decide(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client: Client
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Decide a valid heartbeat; each error has its own message."""
    try:
        if request.member_epoch in _LEAVING:
            return _leave(shard, request)
        transition = _transition(shard, request)
        response = heartbeat.heartbeat(
            transition,
            request,
            client,
            is_looking_up=shard.consumers.is_looking_up(request.group_id),
        )
    except ApiError as error:
        return Decision([], refused(error))
    return Decision(shard.consumers.records(transition), response)


def refused(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    """Return a response with the error."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _leave(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest
) -> Decision[ConsumerGroupHeartbeatResponse]:
    group = _existing(shard, request.group_id)
    member = leaving(group, request)
    transition = shard.consumers.transition(group)
    if request.member_epoch == AWAY_EPOCH and request.instance_id is not None:
        leave_temporarily(transition, member)
    else:
        transition.note(f"member leaves: {member.member_id}")
        shard.consumers.fence(transition, [member])
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Decision(shard.consumers.records(transition), response)


def _existing(shard: GroupShard, group_id: str) -> ConsumerGroup:
    group = shard.consumers.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, not_a_consumer_group(shard, group_id))
    return group


def not_a_consumer_group(shard: GroupShard, group_id: str) -> str:
    """Return the error for a group id that has no group of the consumer protocol."""
    if shard.group(group_id) is None:
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a consumer group."


def _transition(shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> Transition:
    """Return a transition of the group of the request, created or converted if necessary."""
    group_id = request.group_id
    group = shard.consumers.get(group_id)
    if group is not None:
        return shard.consumers.transition(group)
    former = shard.group(group_id)
    if request.member_epoch != JOINING_EPOCH:
        if former is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    transition = shard.consumers.transition(ConsumerGroup(group_id))
    if former is None:
        return transition
    if former.state is not GroupState.EMPTY:
        try:
            migration.check_upgrade(former, transition.settings)
            transition.group, transition.changes = migration.upgraded(
                former, transition.topics.image
            )
        except ApiError as error:
            _log.info("group not upgraded group=%s reason=%s", group_id, error.message)
            raise
        for member in former.members.values():
            transition.timers.append(
                SetTimer(Deadline.SESSION, member.member_id, member.session_timeout_ms)
            )
        transition.note(f"becomes a group of the consumer protocol members={len(former.members)}")
    transition.before += shard.encode([GroupMetadata(group_id, None)])
    return transition


def join(
    shard: GroupShard, request: JoinGroupRequest, joiner: classic.Joiner
) -> Decision[JoinGroupResponse]:
    """Decide a JoinGroup of a group of the consumer protocol that has members."""
    group = _existing(shard, request.group_id)
    if not group.members:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    transition = shard.consumers.transition(group)
    response = classic.join(
        transition,
        request,
        joiner,
        downgrade=lambda transition, member: _replace_last(shard, transition, member),
        is_looking_up=shard.consumers.is_looking_up(request.group_id),
    )
    return Decision(shard.consumers.records(transition), response)


def _replace_last(shard: GroupShard, transition: Transition, member: Member) -> None:
    """Convert a group to classic when its last consumer-protocol member rejoins as a classic one."""
    group = transition.group
    former = group.static_members[member.instance_id or ""]
    consumers = [other for name, other in group.members.items() if name != former]
    remaining = [*consumers, member]
    epoch = _epoch_after(transition)
    is_settled = all(member.is_reconciled_to(epoch) for member in remaining)
    shard.make_classic(transition, remaining, {former: member.member_id}, is_settled=is_settled)


def _epoch_after(transition: Transition) -> int:
    """Return the group's epoch after the transition."""
    epochs = (
        change.value.epoch
        for change in transition.changes
        if isinstance(change, GroupChange) and change.value is not None
    )
    return max(epochs, default=transition.group.epoch)


def sync(shard: GroupShard, request: SyncGroupRequest) -> Decision[SyncGroupResponse]:
    """Decide a SyncGroup of a group of the consumer protocol."""
    transition = shard.consumers.transition(_existing(shard, request.group_id))
    response = classic.sync(transition, request)
    return Decision(shard.consumers.records(transition), response)


def classic_heartbeat(shard: GroupShard, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
    """Decide a Heartbeat of a classic member in a group of the consumer protocol."""
    transition = shard.consumers.transition(_existing(shard, request.group_id))
    response = classic.heartbeat(transition, request)
    return Decision(shard.consumers.records(transition), response)


def leave(shard: GroupShard, request: LeaveGroupRequest) -> Decision[LeaveGroupResponse]:
    """Decide a LeaveGroup of a group of the consumer protocol."""
    transition = shard.consumers.transition(_existing(shard, request.group_id))
    response = classic.leave(transition, request, shard.consumers.fence)
    return Decision(shard.consumers.records(transition), response)


def describe(shard: GroupShard, group_id: str) -> DescribedGroup:
    """Describe a group of the consumer protocol; other groups are not found."""
    group = shard.consumers.get(group_id)
    if group is None:
        return describing.not_found(group_id, not_a_consumer_group(shard, group_id))
    settings = shard.settings.consumer
    return describing.describe(group, shard.image, settings.assignors[0])

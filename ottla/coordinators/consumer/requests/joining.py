"""The member of a request: an existing one, a new one, or a static one that rejoins.

Follows getOrMaybeSubscribeDynamicConsumerGroupMember and its static counterpart.
"""

from dataclasses import replace

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer.changes import CurrentChange, MemberChange, TargetChange
from ottla.coordinators.consumer.state import AWAY_EPOCH, JOINING_EPOCH, ConsumerGroup, Member
from ottla.coordinators.consumer.transition import Transition
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)


def check_room(transition: Transition, member_id: str, instance_id: str | None) -> None:
    """Raise GROUP_MAX_SIZE_REACHED if the group has no room for another member."""
    group, limit = transition.group, transition.settings.max_size
    if instance_id in group.static_members or member_id in group.members:
        return
    if len(group.members) >= limit:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def member_of(transition: Transition, request: ConsumerGroupHeartbeatRequest) -> Member:
    """Return the member of a heartbeat, a new one if it joins; raises ApiError if it must not join."""
    joins = request.member_epoch == JOINING_EPOCH
    if request.instance_id is not None:
        return _static_member(transition, request, joins=joins)
    member = known_member(transition.group, request.member_id) if not joins else None
    if member is None:
        existing = transition.group.members.get(request.member_id)
        member = existing or Member(member_id=request.member_id)
        transition.note(f"member joins: {request.member_id}")
    check_epoch(member, request.member_epoch, request.topic_partitions)
    return member


def known_member(group: ConsumerGroup, member_id: str) -> Member:
    """Return a member; raises UNKNOWN_MEMBER_ID if it is not in the group."""
    member = group.members.get(member_id)
    if member is None:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )
    return member


def known_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """Return the member with an instance id; ApiError if no member has it, or its member id
    differs.
    """
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _static_member(
    transition: Transition, request: ConsumerGroupHeartbeatRequest, *, joins: bool
) -> Member:
    instance_id, member_id = request.instance_id or "", request.member_id
    if not joins:
        member = known_static_member(transition.group, instance_id, member_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member
    current = transition.group.static_member(instance_id)
    if current is None:
        transition.note(f"static member joins: {member_id} instance={instance_id}")
        return transition.group.members.get(member_id) or Member(member_id=member_id)
    if not current.is_classic and current.epoch != AWAY_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {current.member_id} member.",
        )
    return replaced(transition, current, member_id)


def replaced(transition: Transition, current: Member, member_id: str) -> Member:
    """Replace the member id of a static member; its subscription and partitions are kept."""
    group_id = transition.group.group_id
    member = replace(
        current, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH
    )
    remove(transition, current.member_id)
    transition.changes += (
        MemberChange(group_id, member_id, member),
        TargetChange(group_id, member_id, transition.group.target_of(current.member_id)),
        CurrentChange(group_id, member_id, member),
    )
    transition.note(f"static member {current.member_id} is replaced by {member_id}")
    return member


def remove(transition: Transition, member_id: str) -> None:
    """Write the removal of a member, in Kafka's order: current assignment, target, member."""
    group_id = transition.group.group_id
    transition.changes += (
        CurrentChange(group_id, member_id, None),
        TargetChange(group_id, member_id, None),
        MemberChange(group_id, member_id, None),
    )


def check_epoch(member: Member, epoch: int, owned: list[TopicPartitions] | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the member is in this epoch, or joins.

    The previous epoch is accepted from a member that owns no partitions beyond its assignment: the
    response with its new epoch may have been lost.
    """
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    is_late = epoch < member.epoch
    if is_late and epoch == member.previous_epoch and _has_no_more(owned, member):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'smaller' if is_late else 'greater'} member epoch "
        f"({epoch}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _has_no_more(owned: list[TopicPartitions] | None, member: Member) -> bool:
    if owned is None:
        return False
    return all(
        partition in member.assigned.get(topic.topic_id, {})
        for topic in owned
        for partition in topic.partitions
    )

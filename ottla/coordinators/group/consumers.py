"""Requests of members that speak the consumer protocol (KIP-848), decided for one shard.

A name has one group: an empty group of either protocol gives way to the other, one with members is
converted where the migration policy allows it.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer_group import describing, heartbeat
from ottla.coordinators.consumer_group.fencing import go_away, leaving
from ottla.coordinators.consumer_group.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    ConsumerGroup,
)
from ottla.coordinators.consumer_group.turn import Client, Deadline, SetTimer, Turn
from ottla.coordinators.group import migration
from ottla.coordinators.group.records import GroupMetadata
from ottla.coordinators.group.shard import GroupShard
from ottla.coordinators.group.state import GroupState
from ottla.coordinators.runtime import Decision
from ottla.wire.messages.consumer_group_describe import DescribedGroup
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_LEAVING = (LEAVING_EPOCH, AWAY_EPOCH)


def decide(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client: Client
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Decide a heartbeat that was found valid; its errors have a sentence of their own."""
    try:
        if request.member_epoch in _LEAVING:
            return _leave(shard, request)
        turn = _turn(shard, request)
        response = heartbeat.heartbeat(
            turn,
            request,
            client,
            is_looking_up=shard.consumers.is_looking_up(request.group_id),
        )
    except ApiError as error:
        return Decision([], refused(error))
    return Decision(shard.consumers.records(turn), response)


def refused(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    """Return the answer that says an error."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _leave(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest
) -> Decision[ConsumerGroupHeartbeatResponse]:
    group = _existing(shard, request.group_id)
    member = leaving(group, request)
    turn = shard.consumers.turn(group)
    if request.member_epoch == AWAY_EPOCH and request.instance_id is not None:
        go_away(turn, member)
    else:
        turn.note(f"member leaves: {member.member_id}")
        shard.consumers.fence(turn, [member])
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Decision(shard.consumers.records(turn), response)


def _existing(shard: GroupShard, group_id: str) -> ConsumerGroup:
    found = shard.consumers.get(group_id)
    if found is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, not_a_consumer_group(shard, group_id))
    return found


def not_a_consumer_group(shard: GroupShard, group_id: str) -> str:
    """Say why there is no group of the consumer protocol by this name."""
    if shard.group(group_id) is None:
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a consumer group."


def _turn(shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> Turn:
    """Return a decision about the group that the request is for, new or converted if need be."""
    group_id = request.group_id
    found = shard.consumers.get(group_id)
    if found is not None:
        return shard.consumers.turn(found)
    classic = shard.group(group_id)
    if request.member_epoch != JOINING_EPOCH:
        if classic is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    turn = shard.consumers.turn(ConsumerGroup(group_id))
    if classic is None:
        return turn
    if classic.state is not GroupState.EMPTY:
        migration.check_upgrade(classic, turn.settings)
        turn.group, turn.changes = migration.upgraded(classic, turn.topics.image)
        for member in classic.members.values():
            turn.timers.append(
                SetTimer(Deadline.SESSION, member.member_id, member.session_timeout_ms)
            )
        turn.note(f"becomes a group of the consumer protocol members={len(classic.members)}")
    turn.before += shard.encode([GroupMetadata(group_id, None)])
    return turn


def describe(shard: GroupShard, group_id: str) -> DescribedGroup:
    """Describe a group of the consumer protocol; others are not found."""
    group = shard.consumers.get(group_id)
    if group is None:
        return describing.not_found(group_id, not_a_consumer_group(shard, group_id))
    settings = shard.settings.consumer
    return describing.describe(group, shard.image, settings.assignors[0])

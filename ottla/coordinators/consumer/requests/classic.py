"""Members that use the classic protocol, in a group of the consumer protocol (KIP-848).

A join is treated like a full heartbeat, a sync returns the member's partitions. There is no
barrier: each request gets its response immediately, and a heartbeat response makes a member rejoin
whenever its next step is due. Follows classicGroupJoinToConsumerGroup and related methods.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.coordinators.consumer.assignment import epochs
from ottla.coordinators.consumer.assignment.target import Target
from ottla.coordinators.consumer.regex import regexes
from ottla.coordinators.consumer.regex.regexes import RegexUpdate
from ottla.coordinators.consumer.requests import embedded
from ottla.coordinators.consumer.requests.joining import (
    check_room,
    known_member,
    known_static_member,
    replaced,
)
from ottla.coordinators.consumer.state import (
    ClassicMembership,
    ConsumerGroup,
    Member,
    MemberState,
)
from ottla.coordinators.consumer.transition import Client, Deadline, SetTimer, Transition
from ottla.wire import consumer_protocol
from ottla.wire.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription
from ottla.wire.messages.consumer_group_heartbeat import TopicPartitions
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# KIP-394: from this version on a new member first receives its id and joins with it.
ID_FIRST_VERSION = 4

Downgrade = Callable[[Transition, Member], None]


@dataclass(frozen=True, slots=True)
class Joiner:
    """The client of a join, its API version, and a fresh member id in case it has no id."""

    client: Client
    api_version: int
    fresh_id: str


def join(
    transition: Transition,
    request: JoinGroupRequest,
    joiner: Joiner,
    *,
    downgrade: Downgrade,
    is_looking_up: bool,
) -> JoinGroupResponse:
    """Handle a JoinGroup; `downgrade` makes the group classic if only classic members are left."""
    group = transition.group
    transition.may_describe = joiner.client.may_describe
    is_new = not request.member_id
    member_id = request.member_id or joiner.fresh_id
    check_room(transition, member_id, request.group_instance_id)
    names = [protocol.name for protocol in request.protocols]
    if request.protocol_type != PROTOCOL_TYPE or not group.supports_classic(names):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    needs_id = is_new and request.group_instance_id is None
    if needs_id and joiner.api_version >= ID_FIRST_VERSION:
        return JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED)
    old = _member_of(transition, request, member_id, is_new=is_new)
    subscription = _subscription(request)
    member = _updated(old, request, joiner.client, subscription)
    becomes_classic = _is_last_of_consumers(transition, request.group_instance_id)
    stepped = _step(transition, old, member, subscription, becomes_classic, is_looking_up)
    if becomes_classic:
        downgrade(transition, stepped)
    else:
        transition.cancel_timer(Deadline.JOIN, member_id)
        transition.set_timer(Deadline.SESSION, member_id, request.session_timeout_ms)
        transition.set_timer(Deadline.SYNC, member_id, request.rebalance_timeout_ms)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=stepped.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=names[0],
    )


def _member_of(
    transition: Transition, request: JoinGroupRequest, member_id: str, *, is_new: bool
) -> Member:
    group, instance_id = transition.group, request.group_instance_id
    if instance_id is not None and not is_new:
        return known_static_member(group, instance_id, member_id)
    current = group.static_member(instance_id)
    if current is not None:
        return replaced(transition, current, member_id)
    transition.note(f"member joins by the classic protocol: {member_id}")
    return group.members.get(member_id) or Member(member_id=member_id)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return consumer_protocol.decode_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error


def _updated(
    member: Member,
    request: JoinGroupRequest,
    client: Client,
    subscription: ConsumerProtocolSubscription,
) -> Member:
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
    has_timeout = request.rebalance_timeout_ms != -1
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if has_timeout else member.rebalance_timeout_ms
        ),
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",
        client_id=client.client_id,
        client_host=client.client_host,
        classic=ClassicMembership(request.session_timeout_ms, protocols),
    )


def _is_last_of_consumers(transition: Transition, instance_id: str | None) -> bool:
    """Return True if a static member rejoins as a classic one, and all others are classic already."""
    group, settings = transition.group, transition.settings
    current = group.static_member(instance_id)
    if current is None or current.is_classic:
        return False
    return (
        group.classic_member_count == len(group.members) - 1
        and settings.migration_policy.allows_downgrade
        and len(group.members) <= settings.classic_max_size
    )


def _step(
    transition: Transition,
    old: Member,
    member: Member,
    subscription: ConsumerProtocolSubscription,
    becomes_classic: bool,
    is_looking_up: bool,
) -> Member:
    """Move the member towards its target, and return its new state."""
    has_new_names = epochs.store_member(transition, old, member)
    regex = regexes.update(transition, old, member, is_looking_up=is_looking_up)
    must_bump = has_new_names or regex is not RegexUpdate.NONE
    epoch = epochs.update_epoch(transition, member, must_bump=must_bump)
    group = transition.group
    if becomes_classic and group.assignment_epoch < epoch:
        # The rebalance that follows computes a new assignment.
        return member
    if becomes_classic:
        held_by = group.static_members[member.instance_id or ""]
        goal = Target(group.assignment_epoch, group.target_of(held_by))
    else:
        goal = epochs.update_target(transition, member, epoch)
    owned_partitions = embedded.by_id(subscription.owned_partitions, transition.topics.image)
    owned = [
        TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in owned_partitions.items()
    ]
    return epochs.reconcile(transition, member, goal, owned, has_new_subscription=must_bump)


def sync(transition: Transition, request: SyncGroupRequest) -> SyncGroupResponse:
    """Handle a SyncGroup: return the member's partitions, unless it has to rejoin first."""
    group = transition.group
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    name, metadata = classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        name,
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_late = group.assignment_epoch > member.epoch
    if is_late and member.state is not MemberState.UNREVOKED_PARTITIONS:
        transition.timers.append(_join_timer(member))
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    transition.cancel_timer(Deadline.SYNC, member.member_id)
    transition.set_timer(Deadline.SESSION, member.member_id, classic.session_timeout_ms)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=embedded.assignment(member.assigned, transition.topics.image, metadata),
    )


def heartbeat(transition: Transition, request: HeartbeatRequest) -> HeartbeatResponse:
    """Handle a Heartbeat; the response makes the member rejoin if its next step is due."""
    group = transition.group
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    transition.set_timer(Deadline.SESSION, member.member_id, classic.session_timeout_ms)
    if not _must_join_again(group, member):
        return HeartbeatResponse()
    transition.timers.append(_join_timer(member))
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def _must_join_again(group: ConsumerGroup, member: Member) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        partition not in member.assigned.get(topic_id, {}) and (topic_id, partition) in group.owners
        for topic_id, partitions in group.target_of(member.member_id).items()
        for partition in partitions
    )


def _join_timer(member: Member) -> SetTimer:
    timeout_ms = member.rebalance_timeout_ms
    return SetTimer(Deadline.JOIN, member.member_id, timeout_ms, is_kept=True)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[Member, ClassicMembership]:
    if instance_id is None:
        member = known_member(group, member_id)
    else:
        member = known_static_member(group, instance_id, member_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member, member.classic


def _check_generation(member: Member, generation: int) -> None:
    if member.epoch != generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)


def leave(
    transition: Transition,
    request: LeaveGroupRequest,
    fence: Callable[[Transition, list[Member]], None],
) -> LeaveGroupResponse:
    """Handle a LeaveGroup, which may contain members of either protocol; `fence` removes them."""
    leaving: dict[str, Member] = {}
    responses = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member = _leaving(transition.group, identity)
            leaving[member.member_id] = member
        except ApiError as error:
            code = error.code
        responses.append(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=code,
            )
        )
    for member_id in leaving:
        transition.note(f"member leaves: {member_id}")
    if leaving:
        fence(transition, list(leaving.values()))
    return LeaveGroupResponse(members=responses)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return known_member(group, identity.member_id)
    member = group.static_member(instance_id)
    # An operator sends the instance id only.
    if member is not None and not identity.member_id:
        return member
    return known_static_member(group, instance_id, identity.member_id)

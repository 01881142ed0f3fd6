"""A rebalance from its start to the next generation, and its early termination.

    Empty, Stable, CompletingRebalance --prepare--> PreparingRebalance
    PreparingRebalance --complete_join--> CompletingRebalance, or Empty if no member is left

Follows the classic-group part of Kafka's GroupMetadataManager.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import JOIN_TIMER, SYNC_TIMER, Ticket
from ottla.coordinators.classic.state import Group, GroupState, InitialDelay, Member
from ottla.coordinators.classic.stored import metadata_value
from ottla.coordinators.classic.transition import AfterEmpty, Transition
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse


def rebalance_or_complete_join(transition: Transition, reason: str) -> None:
    """Start a rebalance if the state allows it, else end the join phase if all members have joined."""
    if transition.group.can_rebalance:
        prepare(transition, reason)
    else:
        complete_join_if_all_joined(transition)


def prepare(transition: Transition, reason: str) -> None:
    """Start a rebalance: all members have to rejoin."""
    group = transition.group
    if group.state is GroupState.COMPLETING_REBALANCE:
        drop_assignments(transition, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    transition.cancel_timer(SYNC_TIMER)
    is_initial = group.state is GroupState.EMPTY
    transition.note(
        f"rebalance from={group.state.value} generation={group.generation} reason={reason}"
    )
    group.transition(GroupState.PREPARING_REBALANCE, transition.now_ms)
    if is_initial:
        # The members of a new group tend to join at the same time.
        delay_ms = transition.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        transition.set_timer(JOIN_TIMER, delay_ms)
    elif group.has_all_members_joined:
        complete_join(transition)
    else:
        transition.set_timer(JOIN_TIMER, group.rebalance_timeout_ms)


def complete_join_if_all_joined(transition: Transition) -> None:
    """End the join phase if all members have joined; the first one of a group waits for its delay."""
    group = transition.group
    if group.state is not GroupState.PREPARING_REBALANCE or group.initial_delay is not None:
        return
    if group.has_all_members_joined:
        complete_join(transition)


def join_timer_fired(transition: Transition) -> None:
    """End the join phase without the missing members, or continue to wait while new members join."""
    group = transition.group
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    initial = group.initial_delay
    is_delayed = initial is not None and initial.delay_ms > 0 and initial.remaining_ms > 0
    if initial is not None and is_delayed and group.is_new_member_added:
        group.is_new_member_added = False
        delay_ms = min(transition.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        transition.set_timer(JOIN_TIMER, delay_ms)
        return
    complete_join(transition)


def complete_join(transition: Transition) -> None:
    """Begin the next generation with the members that have joined, and the absent static ones."""
    group = transition.group
    transition.cancel_timer(JOIN_TIMER)
    group.initial_delay = None
    group.is_new_member_added = False
    absent = [
        member_id
        for member_id, member in group.members.items()
        if member_id not in group.awaiting_join and not member.is_static
    ]
    for member_id in absent:
        group.remove(member_id)
        transition.end_session(member_id)
    if absent:
        transition.note(f"removed members that have not joined: {', '.join(absent)}")
    if group.members and not group.elect_joined_leader():
        # Only absent static members are left: their session timeouts decide.
        transition.note("no member has joined, waiting")
        transition.set_timer(JOIN_TIMER, group.rebalance_timeout_ms)
        return
    group.generation += 1
    group.pending_sync.clear()
    if group.members:
        _start_generation(transition)
    else:
        _become_empty(transition)


def _become_empty(transition: Transition) -> None:
    group = transition.group
    group.protocol_name = None
    group.learn_subscribed_topics()
    group.transition(GroupState.EMPTY, transition.now_ms)
    transition.note(f"empty generation={group.generation}")
    transition.persist(metadata_value(group, {}), AfterEmpty())


def _start_generation(transition: Transition) -> None:
    group = transition.group
    group.protocol_name = group.elected_protocol()
    group.learn_subscribed_topics()
    group.transition(GroupState.COMPLETING_REBALANCE, transition.now_ms)
    transition.note(
        f"joined generation={group.generation} members={len(group.members)}"
        f" leader={group.leader} protocol={group.protocol_name}"
    )
    for member in group.members.values():
        transition.answer_join(member.member_id, join_response(group, member))
        transition.restart_session(member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    transition.set_timer(SYNC_TIMER, group.rebalance_timeout_ms)


def join_response(group: Group, member: Member) -> JoinGroupResponse:
    """Return the join response for a member; the leader's contains all members."""
    is_leader = member.member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=join_response_members(group) if is_leader else [],
    )


def join_response_members(group: Group) -> list[JoinGroupResponseMember]:
    """Return the members and their subscriptions, which the leader needs for the assignment."""
    assert group.protocol_name is not None
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.protocols[group.protocol_name],
        )
        for member in group.members.values()
    ]


def sync_response(group: Group, member: Member) -> SyncGroupResponse:
    """Return the sync response with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def drop_assignments(transition: Transition, code: ErrorCode) -> None:
    """Drop the generation's assignments and respond to all members that wait for one with an error."""
    assert transition.group.state is GroupState.COMPLETING_REBALANCE
    for member in transition.group.members.values():
        member.assignment = b""
        if transition.answer_sync(member.member_id, SyncGroupResponse(error_code=code)):
            transition.restart_session(member)


def drop_member(transition: Transition, member_id: str) -> None:
    """Remove a member; its waiting requests get an error so that a live client rejoins."""
    transition.answer_join_error(member_id, ErrorCode.UNKNOWN_MEMBER_ID, response_member_id="")
    transition.answer_sync_error(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    transition.group.remove(member_id)
    transition.end_session(member_id)


def session_timer_fired(transition: Transition, member_id: str) -> None:
    """Remove a member whose session timed out, unless it waits for the coordinator."""
    group = transition.group
    if member_id in group.pending_members:
        transition.note(f"pending member expired: {member_id}")
        group.remove(member_id)
        complete_join_if_all_joined(transition)
        return
    member = group.members.get(member_id)
    if member is None:
        return
    is_waiting = member_id in group.awaiting_join or member_id in group.awaiting_sync
    if is_waiting and not member.is_new:
        return
    drop_member(transition, member_id)
    rebalance_or_complete_join(transition, f"session of {member_id} expired")


def sync_timer_fired(transition: Transition) -> None:
    """Remove the members that have not requested their assignment in time."""
    group = transition.group
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    if not group.pending_sync:
        return
    late = sorted(group.pending_sync)
    for member_id in late:
        drop_member(transition, member_id)
    prepare(transition, f"no sync from {', '.join(late)}")


def continue_after_removal(transition: Transition, reason: str) -> None:
    """Continue after members have left: rebalance the remaining ones."""
    if transition.group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare(transition, reason)
    else:
        complete_join_if_all_joined(transition)


def refuse_join(transition: Transition, ticket: Ticket, code: ErrorCode, member_id: str) -> None:
    """Reject a join that has not begun to wait."""
    transition.answer(ticket, JoinGroupResponse(error_code=code, member_id=member_id))

"""JoinGroup: which members may join, under which id, and whether that triggers a rebalance.

Follows GroupMetadataManager.classicGroupJoin and KIP-394 (ids are assigned before the join).
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic import static
from ottla.coordinators.classic.events import Join, Timer, TimerKind
from ottla.coordinators.classic.rebalance import (
    complete_join_if_all_joined,
    join_response,
    rebalance_or_complete_join,
    refuse_join,
)
from ottla.coordinators.classic.state import Group, GroupState, Member, protocols_of
from ottla.coordinators.classic.transition import Transition
from ottla.wire.messages.join_group import JoinGroupRequest

# KIP-394: from this version on a new member first receives its id and joins with it.
ID_FIRST_VERSION = 4
# KIP-800: clients truncate their reasons to this length; others are truncated here.
REASON_LENGTH_MAX = 255


def join(transition: Transition, event: Join) -> None:
    """Handle a JoinGroup request."""
    group, request = transition.group, event.request
    if not _has_room(transition, request.member_id):
        _reject_full(transition, event)
    elif not group.supports(
        request.protocol_type, [protocol.name for protocol in request.protocols]
    ):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        refuse_join(transition, event.ticket, code, request.member_id)
    elif not request.member_id:
        _join_new(transition, event)
    elif request.member_id in group.pending_members and request.group_instance_id is None:
        add_member(transition, event, request.member_id)
    else:
        _join_known(transition, event)


def _has_room(transition: Transition, member_id: str) -> bool:
    group, max_size = transition.group, transition.settings.max_size
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        # Only waiting members count, so the last ones are rejected if the limit was lowered.
        return member_id in group.awaiting_join or len(group.awaiting_join) < max_size
    return member_id in group.members or len(group.members) < max_size


def _reject_full(transition: Transition, event: Join) -> None:
    member_id = event.request.member_id
    if member_id:
        transition.group.remove(member_id)
        transition.end_session(member_id)
    transition.note(f"full, join rejected client={event.client_id}")
    refuse_join(transition, event.ticket, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    complete_join_if_all_joined(transition)


def _join_new(transition: Transition, event: Join) -> None:
    group, request = transition.group, event.request
    if request.group_instance_id is not None:
        member_id = f"{request.group_instance_id}-{event.fresh_id}"
        current = group.static_members.get(request.group_instance_id)
        if current is None:
            add_member(transition, event, member_id)
        else:
            static.replace(transition, event, current, member_id)
        return
    member_id = f"{event.client_id}-{event.fresh_id}"
    if event.api_version < ID_FIRST_VERSION:
        add_member(transition, event, member_id)
        return
    if len(group.pending_members) >= transition.settings.max_size:
        # Requesting ids costs a client nothing, so their number must be limited.
        refuse_join(transition, event.ticket, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        return
    group.pending_members.add(member_id)
    transition.set_timer(Timer(TimerKind.SESSION, member_id), request.session_timeout_ms)
    refuse_join(transition, event.ticket, ErrorCode.MEMBER_ID_REQUIRED, member_id)


def add_member(transition: Transition, event: Join, member_id: str) -> None:
    """Add a new member; its join waits for the rebalance that it triggers."""
    group, request = transition.group, event.request
    if group.state is GroupState.PREPARING_REBALANCE and group.initial_delay is not None:
        group.is_new_member_added = True
    if not group.members:
        group.protocol_type = request.protocol_type
    group.add(
        Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=event.client_id,
            client_host=event.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=protocols_of(request.protocols),
            is_new=True,
        )
    )
    transition.await_join(member_id, event.ticket)
    # A new member cannot send heartbeats until it receives the join response.
    timer = Timer(TimerKind.SESSION, member_id)
    transition.set_timer(timer, transition.settings.new_member_join_timeout_ms)
    rebalance_or_complete_join(transition, f"new member {member_id}{reason_of(request)}")


def _join_known(transition: Transition, event: Join) -> None:
    group, request = transition.group, event.request
    code = group.identity_error(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        refuse_join(transition, event.ticket, code, request.member_id)
        return
    member = group.members[request.member_id]
    if _changes_nothing(group, member, request):
        transition.answer(event.ticket, join_response(group, member))
        return
    update_member(transition, event, member)
    reason = f"{member.member_id} joins again{reason_of(request)}"
    rebalance_or_complete_join(transition, reason)


def _changes_nothing(group: Group, member: Member, request: JoinGroupRequest) -> bool:
    """Return True if a repeated join changes nothing, so that the generation can continue.

    A leader that rejoins a stable group requests a rebalance: the topics may have changed.
    """
    is_same = member.has_protocols(protocols_of(request.protocols))
    if group.state is GroupState.COMPLETING_REBALANCE:
        return is_same
    return group.state is GroupState.STABLE and is_same and member.member_id != group.leader


def update_member(transition: Transition, event: Join, member: Member) -> None:
    """Update a member from its join, which then waits for the rebalance."""
    request = event.request
    transition.group.update(
        member,
        protocols_of(request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
    )
    transition.await_join(member.member_id, event.ticket)


def reason_of(request: JoinGroupRequest) -> str:
    """Return the client's reason (KIP-800) as it is added to the log line."""
    return f" ({request.reason[:REASON_LENGTH_MAX]})" if request.reason else ""

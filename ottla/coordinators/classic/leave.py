"""LeaveGroup: members that leave or are removed by an operator (KIP-345), several at once."""

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import Leave, Persist, Respond
from ottla.coordinators.classic.join import REASON_LENGTH_MAX
from ottla.coordinators.classic.rebalance import (
    complete_join_if_all_joined,
    continue_after_removal,
    drop_member,
)
from ottla.coordinators.classic.transition import AfterEmpty, Transition
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse


def leave(transition: Transition, event: Leave) -> None:
    """Handle a LeaveGroup request; its response waits until an empty group is stored."""
    before = len(transition.effects)
    members = list(transition.group.members)
    responses = [_leave_one(transition, identity) for identity in event.request.members]
    removed = [member_id for member_id in members if member_id not in transition.group.members]
    if removed:
        continue_after_removal(transition, f"left: {', '.join(removed)}")
    else:
        # A rebalance may have been waiting for a pending member that will not join now.
        complete_join_if_all_joined(transition)
    respond = Respond(event.ticket, LeaveGroupResponse(members=responses))
    for effect in transition.effects[before:]:
        if isinstance(effect, Persist):
            transition.stores.waiting[effect.token] = AfterEmpty((respond,))
            return
    transition.effects.append(respond)


def _leave_one(transition: Transition, identity: MemberIdentity) -> MemberResponse:
    code = _remove(transition, identity)
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )


def _remove(transition: Transition, identity: MemberIdentity) -> ErrorCode:
    group = transition.group
    member_id = identity.member_id
    if not member_id:
        # An operator sends the instance id only.
        static_id = group.static_members.get(identity.group_instance_id or "")
        if static_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = static_id
    elif member_id in group.pending_members:
        group.remove(member_id)
        transition.end_session(member_id)
        return ErrorCode.NONE
    else:
        code = group.identity_error(member_id, identity.group_instance_id)
        if code is not ErrorCode.NONE:
            return code
    reason = f" ({identity.reason[:REASON_LENGTH_MAX]})" if identity.reason else ""
    transition.note(f"member leaves: {member_id}{reason}")
    drop_member(transition, member_id)
    return ErrorCode.NONE


def left_stored(transition: Transition, continuation: AfterEmpty) -> None:
    """Respond to the members that have left an empty group."""
    transition.effects.extend(continuation.responses)


def left_failed(transition: Transition, continuation: AfterEmpty, code: ErrorCode) -> None:
    """Respond with the error; the group in memory is empty nevertheless.

    If this broker fails now, the previous generation is loaded from the log, and the session
    timeouts of its members end it.
    """
    for respond in continuation.responses:
        transition.answer(respond.ticket, LeaveGroupResponse(error_code=code))

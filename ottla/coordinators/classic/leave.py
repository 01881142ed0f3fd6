"""LeaveGroup: members that leave or are removed by an operator (KIP-345), several at once."""

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import Answer, Leave, Persist
from ottla.coordinators.classic.join import REASON_LENGTH_MAX
from ottla.coordinators.classic.rebalance import (
    complete_join_if_all_joined,
    drop_member,
    removed_members,
)
from ottla.coordinators.classic.transition import AfterEmpty, Turn
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse


def leave(turn: Turn, event: Leave) -> None:
    """Handle a LeaveGroup request; its response waits until an empty group is stored."""
    before = len(turn.effects)
    members = list(turn.group.members)
    responses = [_leave_one(turn, identity) for identity in event.request.members]
    gone = [member_id for member_id in members if member_id not in turn.group.members]
    if gone:
        removed_members(turn, f"left: {', '.join(gone)}")
    else:
        # A rebalance may have been waiting for a pending member that will not join now.
        complete_join_if_all_joined(turn)
    answer = Answer(event.ticket, LeaveGroupResponse(members=responses))
    for effect in turn.effects[before:]:
        if isinstance(effect, Persist):
            turn.stores.waiting[effect.token] = AfterEmpty((answer,))
            return
    turn.effects.append(answer)


def _leave_one(turn: Turn, identity: MemberIdentity) -> MemberResponse:
    code = _remove(turn, identity)
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )


def _remove(turn: Turn, identity: MemberIdentity) -> ErrorCode:
    group = turn.group
    member_id = identity.member_id
    if not member_id:
        # An operator sends the instance id only.
        found = group.static_members.get(identity.group_instance_id or "")
        if found is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = found
    elif member_id in group.pending_members:
        group.remove(member_id)
        turn.end_session(member_id)
        return ErrorCode.NONE
    else:
        code = group.identity_error(member_id, identity.group_instance_id)
        if code is not ErrorCode.NONE:
            return code
    reason = f" ({identity.reason[:REASON_LENGTH_MAX]})" if identity.reason else ""
    turn.note(f"member leaves: {member_id}{reason}")
    drop_member(turn, member_id)
    return ErrorCode.NONE


def left_stored(turn: Turn, then: AfterEmpty) -> None:
    """Answer the members that have left an empty group."""
    turn.effects.extend(then.answers)


def left_failed(turn: Turn, then: AfterEmpty, code: ErrorCode) -> None:
    """Respond with the error; the group in memory is empty nevertheless.

    If this broker fails now, the previous generation is loaded from the log, and the session
    timeouts of its members end it.
    """
    for answer in then.answers:
        turn.answer(answer.ticket, LeaveGroupResponse(error_code=code))

"""SyncGroup and Heartbeat: from the leader's assignments to a stable group, and session renewal."""

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import SYNC_TIMER, Heartbeat, Sync, Touch
from ottla.coordinators.classic.rebalance import drop_assignments, prepare, sync_response
from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.classic.stored import metadata_value
from ottla.coordinators.classic.transition import AfterSync, Transition
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(transition: Transition, event: Sync) -> None:
    """Handle a SyncGroup request: wait for the leader's assignments, or return the current one."""
    group, request = transition.group, event.request
    code = _sync_error(group, request)
    if code is not ErrorCode.NONE:
        transition.answer(event.ticket, SyncGroupResponse(error_code=code))
        return
    _sync_received(transition, request.member_id)
    if group.state is GroupState.STABLE:
        transition.answer(event.ticket, sync_response(group, group.members[request.member_id]))
        return
    transition.await_sync(request.member_id, event.ticket)
    if request.member_id == group.leader:
        _store_assignments(transition, request)


def _sync_error(group: Group, request: SyncGroupRequest) -> ErrorCode:
    code = group.identity_error(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # KIP-559; older versions omit both fields.
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _sync_received(transition: Transition, member_id: str) -> None:
    transition.group.pending_sync.discard(member_id)
    if not transition.group.pending_sync:
        transition.cancel_timer(SYNC_TIMER)


def _store_assignments(transition: Transition, request: SyncGroupRequest) -> None:
    group = transition.group
    received = {
        assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments
    }
    assignments = {member_id: received.get(member_id, b"") for member_id in group.members}
    transition.note(f"assigned generation={group.generation} leader={request.member_id}")
    continuation = AfterSync(group.generation, assignments)
    transition.persist(metadata_value(group, assignments), continuation)


def assignments_stored(transition: Transition, continuation: AfterSync) -> None:
    """Become stable and send every waiting member its assignment, unless a rebalance has begun."""
    group = transition.group
    if not _is_current(group, continuation):
        return
    group.transition(GroupState.STABLE, transition.now_ms)
    for member in group.members.values():
        member.assignment = continuation.assignments.get(member.member_id, b"")
        if transition.answer_sync(member.member_id, sync_response(group, member)):
            transition.restart_session(member)
    transition.note(f"stable generation={group.generation}")


def assignments_failed(transition: Transition, continuation: AfterSync, code: ErrorCode) -> None:
    """Send the error to all waiting members, and rebalance again."""
    if _is_current(transition.group, continuation):
        drop_assignments(transition, code)
        prepare(transition, f"assignments could not be stored: {code.name}")


def _is_current(group: Group, continuation: AfterSync) -> bool:
    is_completing = group.state is GroupState.COMPLETING_REBALANCE
    return is_completing and group.generation == continuation.generation


def heartbeat(transition: Transition, event: Heartbeat) -> None:
    """Handle a Heartbeat request; its response also reports a rebalance to the member."""
    group, request = transition.group, event.request
    code = group.identity_error(request.member_id, request.group_instance_id)
    if code is ErrorCode.NONE and request.generation_id != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    if code is ErrorCode.NONE:
        transition.restart_session(group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            code = ErrorCode.REBALANCE_IN_PROGRESS
    transition.answer(event.ticket, HeartbeatResponse(error_code=code))


def touch(transition: Transition, event: Touch) -> None:
    """Renew the member's session after an offset commit."""
    member = transition.group.members.get(event.member_id)
    alive_in = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
    if member is not None and transition.group.state in alive_in:
        transition.restart_session(member)

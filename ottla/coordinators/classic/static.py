"""Static members that rejoin: a new member id replaces the old one (KIP-345, KIP-814).

A stable group does not rebalance if it would still elect the same protocol: the member receives its
new id as soon as that is stored.
"""

from dataclasses import replace as copy_of

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import Join, StoreFailed, Ticket
from ottla.coordinators.classic.rebalance import (
    complete_join_if_all_joined,
    join_response,
    join_response_members,
    prepare,
    refuse_join,
)
from ottla.coordinators.classic.state import Group, GroupState, Member, protocols_of
from ottla.coordinators.classic.stored import metadata_value
from ottla.coordinators.classic.transition import AfterReplacement, Transition
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.schema import first_version

# KIP-814: from this version on the response can make a leader skip the assignment.
_FIRST_VERSION_WITH_SKIP = first_version(JoinGroupResponse, "skip_assignment")


def replace(transition: Transition, event: Join, old_member_id: str, new_member_id: str) -> None:
    """Replace the id of the static member `old_member_id`, and rebalance only if necessary."""
    group = transition.group
    old_leader = group.leader
    transition.note(f"static member {old_member_id} is replaced by {new_member_id}")
    _fence(transition, old_member_id)
    old_member = group.members[old_member_id]
    member = copy_of(
        old_member,
        member_id=new_member_id,
        client_id=event.client_id,
        client_host=event.client_host,
    )
    _put(group, old_member_id, member)
    transition.end_session(old_member_id)
    transition.restart_session(member)
    _update(transition, event, member)
    if group.state is GroupState.STABLE:
        if group.elected_protocol() == group.protocol_name:
            skips = event.api_version >= _FIRST_VERSION_WITH_SKIP
            continuation = AfterReplacement(
                event.ticket, new_member_id, old_member, old_leader, skips
            )
            assignments = {name: member.assignment for name, member in group.members.items()}
            transition.persist(metadata_value(group, assignments), continuation)
        else:
            prepare(transition, f"static member {new_member_id} changes the protocol")
    elif group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may currently be computing an assignment for the old id.
        prepare(transition, f"static member {new_member_id} has come back")
    else:
        complete_join_if_all_joined(transition)


def _fence(transition: Transition, old_member_id: str) -> None:
    """Respond to requests that still wait under the old id: the member has been fenced."""
    transition.answer_join_error(old_member_id, ErrorCode.FENCED_INSTANCE_ID)
    transition.answer_sync_error(old_member_id, ErrorCode.FENCED_INSTANCE_ID)


def _put(group: Group, old_member_id: str, member: Member) -> None:
    """Replace the old member by `member`. If the old member was the leader, `member` becomes the
    leader.
    """
    was_leader = group.leader == old_member_id
    was_pending_sync = old_member_id in group.pending_sync
    group.remove(old_member_id)
    group.add(member)
    if was_leader:
        group.leader = member.member_id
    if was_pending_sync:
        group.pending_sync.add(member.member_id)


def _update(transition: Transition, event: Join, member: Member) -> None:
    request = event.request
    transition.group.update(
        member,
        protocols_of(request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
    )
    transition.await_join(member.member_id, event.ticket)


def replacement_stored(transition: Transition, continuation: AfterReplacement) -> None:
    """Respond to the join of the returned member; if a rebalance has begun, it responds later."""
    group = transition.group
    if group.state is not GroupState.STABLE or not _is_waiting(group, continuation):
        return
    member = group.members[continuation.new_member_id]
    response = join_response(group, member)
    is_leader = group.leader == continuation.new_member_id
    if continuation.skips_assignment:
        response.skip_assignment = is_leader
        response.members = join_response_members(group) if is_leader else []
    else:
        # A leader of an older version must not assign again: the response names its old id as the
        # leader.
        response.leader = continuation.old_leader or ""
        response.members = []
    transition.answer_join(continuation.new_member_id, response)


def replacement_failed(
    transition: Transition, continuation: AfterReplacement, event: StoreFailed
) -> None:
    """Undo a replacement that could not be stored.

    A replacement that is in the log is kept, because memory must not differ from the log; the
    client joins again and replaces it once more. It is also kept during a rebalance, which stores a
    record of its own.
    """
    group = transition.group
    if group.state is not GroupState.STABLE or not _is_waiting(group, continuation):
        return
    del group.awaiting_join[continuation.new_member_id]
    refuse_join(transition, continuation.ticket, event.code, "")
    if event.is_written:
        return
    transition.end_session(continuation.new_member_id)
    _put(group, continuation.new_member_id, continuation.old_member)
    transition.restart_session(continuation.old_member)


def _is_waiting(group: Group, continuation: AfterReplacement) -> bool:
    ticket: Ticket | None = group.awaiting_join.get(continuation.new_member_id)
    return ticket is not None and ticket == continuation.ticket

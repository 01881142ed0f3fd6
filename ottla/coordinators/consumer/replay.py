"""Applies changes to groups after they were appended, or read from the log; nothing else changes
groups.

Tombstones of groups and members that do not exist change nothing: compaction may have removed the
records that they delete. Follows the replay methods of Kafka's GroupMetadataManager.
"""

from dataclasses import replace
from typing import TypeVar

from ottla.coordinators.consumer.changes import (
    Change,
    CurrentChange,
    GroupChange,
    MemberChange,
    PartitionMetadataChange,
    RegexChange,
    TargetChange,
    TargetEpoch,
    TargetEpochChange,
)
from ottla.coordinators.consumer.state import (
    LEAVING_EPOCH,
    NO_EPOCH,
    ConsumerGroup,
    Member,
    MemberState,
)

V = TypeVar("V")
Groups = dict[str, ConsumerGroup]

_NO_TARGET = TargetEpoch(NO_EPOCH, 0)


def apply(groups: Groups, change: Change) -> None:
    """Apply one change."""
    if isinstance(change, GroupChange) and change.value is None:
        groups.pop(change.group_id, None)
        return
    group = groups.get(change.group_id)
    if group is None:
        if _is_tombstone(change):
            return
        group = groups[change.group_id] = ConsumerGroup(change.group_id)
    _apply_to(group, change)


def _is_tombstone(change: Change) -> bool:
    if isinstance(change, PartitionMetadataChange):
        return not change.is_there
    return change[-1] is None


def _apply_to(group: ConsumerGroup, change: Change) -> None:
    match change:
        case GroupChange(_, value):
            assert value is not None
            group.epoch, group.metadata_hash = value
        case PartitionMetadataChange(_, is_there):
            group.has_partition_metadata = is_there
        case MemberChange():
            _apply_member(group, change)
        case CurrentChange():
            _apply_current(group, change)
        case TargetEpochChange(_, value):
            group.assignment_epoch, group.assignment_timestamp_ms = value or _NO_TARGET
        case TargetChange(_, member_id, target):
            _put(group.targets, member_id, target)
        case RegexChange(_, regex, resolved):
            _put(group.regexes, regex, resolved)


def _put(values: dict[str, V], key: str, value: V | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _apply_member(group: ConsumerGroup, change: MemberChange) -> None:
    if change.member is None:
        group.remove(change.member_id)
        return
    old = group.members.get(change.member_id) or Member(member_id=change.member_id)
    group.put(_with_current_of(change.member, old))


def _apply_current(group: ConsumerGroup, change: CurrentChange) -> None:
    old = group.members.get(change.member_id)
    if change.member is not None:
        member = _with_current_of(old or Member(member_id=change.member_id), change.member)
        group.put(member)
    elif old is not None:
        departed = Member(
            member_id=change.member_id,
            epoch=LEAVING_EPOCH,
            previous_epoch=LEAVING_EPOCH,
            state=MemberState.STABLE,
        )
        group.put(_with_current_of(old, departed))


def _with_current_of(member: Member, other: Member) -> Member:
    """Return the member with the epochs, state and partitions of the other."""
    return replace(
        member,
        epoch=other.epoch,
        previous_epoch=other.previous_epoch,
        state=other.state,
        assigned=other.assigned,
        pending_revocation=other.pending_revocation,
    )

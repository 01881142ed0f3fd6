"""Members that leave, and members whose session has timed out.

Every removal creates a new group epoch, so that the others share the member's partitions. If only
members of the classic protocol are left, the group becomes classic; this module only decides that,
the caller converts it. Follows consumerGroupLeave and consumerGroupFenceMembers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ottla.coordinators.consumer.assignment import topics
from ottla.coordinators.consumer.changes import (
    CurrentChange,
    GroupChange,
    GroupEpoch,
    RegexChange,
)
from ottla.coordinators.consumer.requests.joining import known_member, known_static_member, remove
from ottla.coordinators.consumer.state import AWAY_EPOCH, ConsumerGroup, Member
from ottla.coordinators.consumer.transition import Transition
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def leaving(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Member:
    """Return the member that leaves; raises ApiError if it is not in the group."""
    if request.instance_id is None:
        return known_member(group, request.member_id)
    return known_static_member(group, request.instance_id, request.member_id)


def leave_temporarily(transition: Transition, member: Member) -> None:
    """Release a static member that will return within its session: it keeps its partitions."""
    assigned = {
        topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()
    }
    away = replace(member, epoch=AWAY_EPOCH, assigned=assigned, pending_revocation={})
    transition.changes.append(CurrentChange(transition.group.group_id, member.member_id, away))
    transition.note(f"static member is temporarily absent: {member.member_id}")


def becomes_classic(transition: Transition, leaving: Sequence[Member]) -> bool:
    """Return True if the group must become classic when these members have left."""
    group, settings = transition.group, transition.settings
    names = {member.member_id for member in leaving}
    remaining = [member for name, member in group.members.items() if name not in names]
    return (
        bool(remaining)
        and all(member.is_classic for member in remaining)
        and settings.migration_policy.allows_downgrade
        and len(remaining) <= settings.classic_max_size
    )


def fence(transition: Transition, leaving: Sequence[Member]) -> None:
    """Remove members and begin a new epoch; after the last one the group is empty."""
    if not leaving:
        return
    group = transition.group
    for member in leaving:
        remove(transition, member.member_id)
    names = {member.member_id for member in leaving}
    remaining = [member for name, member in group.members.items() if name not in names]
    _drop_regexes(transition, leaving, remaining)
    epoch = group.epoch + 1
    read = group.topics_read(group.subscriptions(remaining))
    metadata_hash = topics.metadata_hash(transition.topics.image, read)
    transition.changes.append(GroupChange(group.group_id, GroupEpoch(epoch, metadata_hash)))
    transition.note(f"epoch={epoch} members={len(remaining)}")


def _drop_regexes(
    transition: Transition, leaving: Sequence[Member], remaining: Sequence[Member]
) -> None:
    used = Counter(member.subscribed_regex for member in remaining)
    for regex in dict.fromkeys(member.subscribed_regex for member in leaving):
        if regex and not used[regex]:
            transition.changes.append(RegexChange(transition.group.group_id, regex, None))

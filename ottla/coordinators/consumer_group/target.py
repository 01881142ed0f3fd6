"""The target assignment: what each member shall have from a group epoch on.

Follows Kafka's TargetAssignmentBuilder.
"""

from typing import NamedTuple

from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer_group import topics
from ottla.coordinators.consumer_group.assignors.offered import ASSIGNORS
from ottla.coordinators.consumer_group.assignors.plan import GroupPlan, MemberPlan
from ottla.coordinators.consumer_group.changes import (
    Change,
    TargetChange,
    TargetEpoch,
    TargetEpochChange,
)
from ottla.coordinators.consumer_group.state import ConsumerGroup, Member, TargetAssignment


class Target(NamedTuple):
    """The epoch of the target, and what one member shall have in it."""

    epoch: int
    assignment: TargetAssignment


def target_for(group: ConsumerGroup, member: Member) -> Target:
    """Return the target as it stands; a static member that comes back has that of its former life."""
    held_by = group.static_members.get(member.instance_id or "", member.member_id)
    return Target(group.assignment_epoch, group.target_of(held_by))


def compute(
    group: ConsumerGroup,
    members: list[Member],
    image: ClusterImage,
    *,
    assignor: str,
    epoch: TargetEpoch,
) -> tuple[dict[str, TargetAssignment], list[Change]]:
    """Assign to these members and return what each shall have, and the changes that this makes."""
    counts = topics.partition_counts(image, set().union(*(group.topics_of(m) for m in members)))
    ids: dict[str, bytes | None] = {}
    plans = {item.member_id: _plan(group, item, image, ids) for item in members}
    computed = ASSIGNORS[assignor](GroupPlan(plans, counts))
    changes: list[Change] = [
        TargetChange(group.group_id, member_id, target)
        for member_id, target in computed.items()
        if target != group.targets.get(member_id)
    ]
    changes.append(TargetEpochChange(group.group_id, epoch))
    return computed, changes


def _plan(
    group: ConsumerGroup, member: Member, image: ClusterImage, ids: dict[str, bytes | None]
) -> MemberPlan:
    found = set()
    for name in group.topics_of(member):
        if name not in ids:
            topic = image.topic(name)
            ids[name] = None if topic is None else topic.topic_id
        topic_id = ids[name]
        if topic_id is not None:
            found.add(topic_id)
    return MemberPlan(frozenset(found), target_for(group, member).assignment, member.instance_id)

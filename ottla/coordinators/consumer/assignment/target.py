"""The target assignment: the partitions that each member should own from a group epoch on.

The target of a large group is computed outside of the event loop (`Job`), and written when it is
finished. Until then members continue with the current target. Follows Kafka's
TargetAssignmentBuilder.
"""

from typing import NamedTuple

from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.assignment import topics
from ottla.coordinators.consumer.assignment.assignors.offered import ASSIGNORS
from ottla.coordinators.consumer.assignment.assignors.plan import Assignments, GroupPlan, MemberPlan
from ottla.coordinators.consumer.changes import (
    Change,
    TargetChange,
    TargetEpoch,
    TargetEpochChange,
)
from ottla.coordinators.consumer.state import ConsumerGroup, Member, TargetAssignment

# The sum of members and partitions from which an assignor does not run on the event loop.
LARGE = 2000


class Job(NamedTuple):
    """A target to be computed: its members, the group epoch and the assignor."""

    epoch: int
    assignor: str
    plan: GroupPlan

    def run(self) -> Assignments:
        """Run the assignor; safe in another thread, since a job is immutable."""
        return ASSIGNORS[self.assignor](self.plan)


class Target(NamedTuple):
    """The epoch of the target, and one member's partitions in it."""

    epoch: int
    assignment: TargetAssignment


def target_for(group: ConsumerGroup, member: Member) -> Target:
    """Return the current target; a static member that returns inherits the target of its old member
    id.
    """
    held_by = group.static_members.get(member.instance_id or "", member.member_id)
    return Target(group.assignment_epoch, group.target_of(held_by))


def is_large(group: ConsumerGroup, members: list[Member], image: ClusterImage) -> bool:
    """Return True if an assignor would delay other requests for too long."""
    return len(members) + sum(_counts(group, members, image).values()) >= LARGE


def job(
    group: ConsumerGroup,
    members: list[Member],
    image: ClusterImage,
    *,
    default_assignor: str,
    epoch: int,
) -> Job:
    """Return the job that computes the target of these members."""
    ids: dict[str, bytes | None] = {}
    plans = {member.member_id: _plan(group, member, image, ids) for member in members}
    assignor = group.preferred_assignor(members) or default_assignor
    return Job(epoch, assignor, GroupPlan(plans, _counts(group, members, image)))


def changes_of(
    group: ConsumerGroup, computed: Assignments, job: Job, now_ms: int, *, is_later: bool = False
) -> list[Change]:
    """Return the changes that make `computed` the target.

    If `is_later`, time has passed since the job was created: members may have left, and static ones
    may have returned under other ids.
    """
    assignments = _still_there(group, computed, job) if is_later else computed
    changes: list[Change] = [
        TargetChange(group.group_id, member_id, target)
        for member_id, target in assignments.items()
        if target != group.targets.get(member_id)
    ]
    changes.append(TargetEpochChange(group.group_id, TargetEpoch(job.epoch, now_ms)))
    return changes


def _still_there(group: ConsumerGroup, computed: Assignments, job: Job) -> Assignments:
    assignments: Assignments = {}
    for member_id, assignment in computed.items():
        instance_id = job.plan.members[member_id].instance_id
        now = member_id
        if member_id not in group.members:
            now = group.static_members.get(instance_id or "", "")
        if now:
            assignments[now] = assignment
    return assignments


def _counts(group: ConsumerGroup, members: list[Member], image: ClusterImage) -> dict[bytes, int]:
    names: set[str] = set().union(*(group.topics_of(member) for member in members))
    return topics.partition_counts(image, names)


def _plan(
    group: ConsumerGroup, member: Member, image: ClusterImage, ids: dict[str, bytes | None]
) -> MemberPlan:
    topic_ids = set()
    for name in group.topics_of(member):
        if name not in ids:
            topic = image.topic(name)
            ids[name] = None if topic is None else topic.topic_id
        topic_id = ids[name]
        if topic_id is not None:
            topic_ids.add(topic_id)
    return MemberPlan(
        frozenset(topic_ids), target_for(group, member).assignment, member.instance_id
    )

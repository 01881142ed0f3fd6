"""Updates after a change of a member: the group's epoch, the target, and the member's next step.

Follows the part of GroupMetadataManager.consumerGroupHeartbeat that joins of classic members use,
too.
"""

from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.assignment import target, topics
from ottla.coordinators.consumer.assignment.reconciliation import Reconciliation
from ottla.coordinators.consumer.assignment.target import Target
from ottla.coordinators.consumer.changes import (
    CurrentChange,
    GroupChange,
    GroupEpoch,
    MemberChange,
    PartitionMetadataChange,
)
from ottla.coordinators.consumer.state import ConsumerGroup, Member, MemberState
from ottla.coordinators.consumer.transition import Deadline, SetTimer, Transition
from ottla.wire.messages.consumer_group_heartbeat import TopicPartitions


def store_member(transition: Transition, old: Member, member: Member) -> bool:
    """Write a member that has changed; return True if it subscribes to other topics than before."""
    if member == old:
        return False
    transition.changes.append(MemberChange(transition.group.group_id, member.member_id, member))
    return member.subscribed_topics != old.subscribed_topics


def update_epoch(transition: Transition, member: Member, *, must_bump: bool) -> int:
    """Check the topics if they or the members have changed; return the group's epoch."""
    group = transition.group
    if not must_bump and not transition.is_metadata_due:
        return group.epoch
    members = group.members_with(member)
    names = group.topics_read(group.subscriptions(members))
    metadata_hash = topics.metadata_hash(transition.topics.image, names)
    epoch = group.epoch
    if must_bump or metadata_hash != group.metadata_hash:
        epoch += 1
        transition.changes.append(GroupChange(group.group_id, GroupEpoch(epoch, metadata_hash)))
        transition.note(f"epoch={epoch} members={len(members)}")
    transition.checked_at_epoch = epoch
    if group.has_partition_metadata:
        transition.changes.append(PartitionMetadataChange(group.group_id, is_there=False))
    return epoch


def update_target(transition: Transition, member: Member, group_epoch: int) -> Target:
    """Return the target of a member, computed again if it is of an older epoch than the group."""
    group, settings = transition.group, transition.settings
    if group.assignment_epoch >= group_epoch or not _is_time(transition):
        return target.target_for(group, member)
    members = group.members_with(member)
    # The first target is for one member, which receives it immediately.
    if group.assignment_timestamp_ms and target.is_large(group, members, transition.topics.image):
        transition.is_target_wanted = True
        return target.target_for(group, member)
    job = target.job(
        group,
        members,
        transition.topics.image,
        default_assignor=settings.assignors[0],
        epoch=group_epoch,
    )
    computed = job.run()
    transition.changes += target.changes_of(group, computed, job, transition.now_ms)
    transition.note(f"assigned epoch={group_epoch} assignor={job.assignor} members={len(members)}")
    return Target(group_epoch, computed.get(member.member_id, {}))


def _is_time(transition: Transition) -> bool:
    """Return True if the last target is old enough (KIP-1263)."""
    last_ms, interval_ms = (
        transition.group.assignment_timestamp_ms,
        transition.settings.assignment_interval_ms,
    )
    return not last_ms or not interval_ms or transition.now_ms >= last_ms + interval_ms


def reconcile(
    transition: Transition,
    member: Member,
    goal: Target,
    owned: list[TopicPartitions] | None,
    *,
    has_new_subscription: bool,
) -> Member:
    """Move the member one step towards its target and return its new state."""
    if not has_new_subscription and member.is_reconciled_to(goal.epoch):
        return member
    group = transition.group
    ids = topic_ids(group, member, transition.topics.image)
    stepped = Reconciliation(group, goal, ids, owned, has_new_subscription).step(member)
    if stepped == member:
        return member
    transition.changes.append(CurrentChange(group.group_id, stepped.member_id, stepped))
    if not stepped.is_classic:
        if stepped.state is MemberState.UNREVOKED_PARTITIONS:
            transition.timers.append(rebalance_timer(stepped))
        else:
            transition.cancel_timer(Deadline.REBALANCE, stepped.member_id)
    return stepped


def topic_ids(group: ConsumerGroup, member: Member, image: ClusterImage) -> frozenset[bytes]:
    """Return the ids of the existing topics that a member reads."""
    topics = (image.topic(name) for name in group.topics_of(member))
    return frozenset(topic.topic_id for topic in topics if topic is not None)


def rebalance_timer(member: Member) -> SetTimer:
    """Return the deadline for the member to revoke the partitions it should no longer own."""
    return SetTimer(
        Deadline.REBALANCE, member.member_id, member.rebalance_timeout_ms, epoch=member.epoch
    )

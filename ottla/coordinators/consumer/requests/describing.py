"""ConsumerGroupDescribe: the committed state of a group of the consumer protocol."""

from collections.abc import Iterable, Mapping

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.state import ConsumerGroup
from ottla.coordinators.consumer.state import Member as GroupMember
from ottla.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC, _CONSUMER = 0, 1


def describe(group: ConsumerGroup, image: ClusterImage, default_assignor: str) -> DescribedGroup:
    """Describe a group; deleted topics are left out of its assignments."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_member(group, member, image) for member in group.members.values()],
    )


def not_found(group_id: str, message: str) -> DescribedGroup:
    """Return the response for a group that does not exist, or uses another protocol."""
    return DescribedGroup(
        group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message
    )


def _member(group: ConsumerGroup, member: GroupMember, image: ClusterImage) -> Member:
    # A member owns a partition that it has to revoke until it has revoked it.
    assigned: dict[bytes, list[int]] = {}
    for assignment in (member.assigned, member.pending_revocation):
        for topic_id, partitions in assignment.items():
            assigned.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(assigned, image),
        target_assignment=_assignment(group.target_of(member.member_id), image),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(assigned: Mapping[bytes, Iterable[int]], image: ClusterImage) -> Assignment:
    topics = ((topic_id, image.topic_by_id(topic_id), partitions)
             for topic_id, partitions in assigned.items())  # fmt: skip
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions))
            for topic_id, topic, partitions in topics
            if topic is not None
        ]
    )

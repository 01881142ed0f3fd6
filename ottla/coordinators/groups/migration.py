"""Conversion of groups with their members between the classic and the consumer protocol (KIP-848).

A classic group of Kafka consumers is converted when the first member that uses the consumer
protocol joins; the members' partitions become their target and current assignment. The group
becomes classic again when only classic members are left. It then rebalances unless all of them have
their targets, and has no leader until then. Follows ConsumerGroup.fromClassicGroup and
ClassicGroup.fromConsumerGroup.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.cluster.image import ClusterImage
from ottla.coordinators.classic.state import Group, GroupState, Member
from ottla.coordinators.classic.stored import metadata_value
from ottla.coordinators.consumer.assignment import topics
from ottla.coordinators.consumer.changes import (
    Change,
    CurrentChange,
    GroupChange,
    GroupEpoch,
    MemberChange,
    PartitionMetadataChange,
    RegexChange,
    TargetChange,
    TargetEpoch,
    TargetEpochChange,
)
from ottla.coordinators.consumer.requests import embedded
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.state import (
    INITIAL_EPOCH,
    ClassicMembership,
    ConsumerGroup,
    MemberState,
    partitions_of,
)
from ottla.coordinators.consumer.state import Member as ConsumerMember
from ottla.wire import consumer_protocol
from ottla.wire.group_records import GroupMetadataValue


def check_upgrade(group: Group, settings: ConsumerSettings) -> None:
    """Raise GROUP_ID_NOT_FOUND, with the reason, unless a classic group with members may be
    converted.
    """
    if not settings.migration_policy.allows_upgrade:
        raise _refusal(group, "online upgrade is disabled")
    if not group.is_consumer_group:
        raise _refusal(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.max_size:
        raise _refusal(group, "the group size exceeds the consumer group maximum size")


def _refusal(group: Group, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


def upgraded(group: Group, image: ClusterImage) -> tuple[ConsumerGroup, list[Change]]:
    """Return the consumer-protocol group for a classic group, and the changes that convert it."""
    epoch = max(group.generation, INITIAL_EPOCH)
    # The assignment of a group that is being rebalanced is not its members' assignment. An epoch
    # without a target makes the next heartbeat compute it, even if the new member reads nothing.
    is_assigned = group.state is GroupState.STABLE
    consumer_group = ConsumerGroup(
        group.group_id, epoch=epoch if is_assigned else epoch + 1, assignment_epoch=epoch
    )
    protocol = group.protocol_name or group.elected_protocol()
    try:
        for member in group.members.values():
            _add_member(consumer_group, member, protocol, image)
    except ProtocolError as error:
        raise _refusal(group, "the embedded consumer protocol is malformed") from error
    consumer_group.metadata_hash = topics.metadata_hash(image, consumer_group.topics_read())
    return consumer_group, _creation(consumer_group)


def _add_member(
    consumer_group: ConsumerGroup, member: Member, protocol: str, image: ClusterImage
) -> None:
    assignment = consumer_protocol.decode_assignment(member.assignment)
    if assignment.user_data:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {consumer_group.group_id} to consumer group because an unsupported "
            "custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    subscription = consumer_protocol.decode_subscription(member.protocols[protocol])
    assigned = embedded.by_id(assignment.assigned_partitions, image)
    consumer_group.targets[member.member_id] = {
        topic_id: frozenset(partitions) for topic_id, partitions in assigned.items()
    }
    consumer_group.put(
        ConsumerMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topics=frozenset(subscription.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMembership(member.session_timeout_ms, tuple(member.protocols.items())),
            epoch=consumer_group.assignment_epoch,
            previous_epoch=consumer_group.assignment_epoch,
            state=MemberState.STABLE,
            assigned={
                topic_id: dict.fromkeys(partitions, consumer_group.assignment_epoch)
                for topic_id, partitions in assigned.items()
            },
        )
    )


def _creation(group: ConsumerGroup) -> list[Change]:
    group_id, members = group.group_id, group.members
    changes: list[Change] = [
        MemberChange(group_id, name, member) for name, member in members.items()
    ]
    changes.append(GroupChange(group_id, GroupEpoch(group.epoch, group.metadata_hash)))
    changes += [TargetChange(group_id, name, group.target_of(name)) for name in members]
    changes.append(TargetEpochChange(group_id, TargetEpoch(group.assignment_epoch, 0)))
    changes += [CurrentChange(group_id, name, member) for name, member in members.items()]
    return changes


def tombstones(group: ConsumerGroup, renamed: Mapping[str, str] | None = None) -> list[Change]:
    """Return the changes that delete a group; `renamed` maps members to the id just written for
    them.
    """
    group_id = group.group_id
    names = [(renamed or {}).get(name, name) for name in group.members]
    changes: list[Change] = [CurrentChange(group_id, name, None) for name in names]
    changes += [TargetChange(group_id, name, None) for name in names]
    changes.append(TargetEpochChange(group_id, None))
    changes += [MemberChange(group_id, name, None) for name in names]
    changes += [RegexChange(group_id, regex, None) for regex in group.regexes]
    changes.append(PartitionMetadataChange(group_id, is_there=False))
    changes.append(GroupChange(group_id, None))
    return changes


def downgraded(
    group: ConsumerGroup, members: Iterable[ConsumerMember], image: ClusterImage, now_ms: int
) -> GroupMetadataValue:
    """Return the classic group of these members, all of them classic, with what they own.

    Kafka stores their targets. A consumer-protocol member that joins before the rebalance has ended
    would then be assigned partitions that a classic member has not given up yet.
    """
    classic_group = Group(
        group.group_id,
        state=GroupState.STABLE,
        state_since_ms=now_ms,
        generation=group.epoch,
        protocol_type=consumer_protocol.PROTOCOL_TYPE,
    )
    owned: dict[str, dict[bytes, list[int]]] = {}
    for member in members:
        assert member.classic is not None
        owned[member.member_id] = {}
        for topic_id, partition in partitions_of(member):
            owned[member.member_id].setdefault(topic_id, []).append(partition)
        classic_group.add(
            Member(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.classic.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=dict(member.classic.protocols),
            )
        )
    classic_group.protocol_name = classic_group.elected_protocol()
    assignments = {
        name: embedded.assignment(owned[name], image, member.protocols[classic_group.protocol_name])
        for name, member in classic_group.members.items()
    }
    return metadata_value(classic_group, assignments)


def without(group: ConsumerGroup, leaving: Iterable[ConsumerMember]) -> list[ConsumerMember]:
    """Return the remaining members when some leave."""
    names = {member.member_id for member in leaving}
    return [replace(member) for name, member in group.members.items() if name not in names]

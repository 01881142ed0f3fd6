"""The records that a group writes to and reads from __consumer_offsets.

A change consists of the group's own values; this module converts it to Kafka's record and back. A
value of None is a tombstone. Follows GroupCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ottla.base.errors import ProtocolError
from ottla.coordinators.consumer.state import (
    ClassicMembership,
    CurrentAssignment,
    Member,
    MemberState,
    ResolvedRegex,
    TargetAssignment,
)
from ottla.wire import consumer_group_records as stored
from ottla.wire.records.records import Record
from ottla.wire.schema import Message


class GroupEpoch(NamedTuple):
    """A group's epoch and the hash of the topics it reads."""

    epoch: int
    metadata_hash: int


class TargetEpoch(NamedTuple):
    """The group epoch for which the target was computed, and the time (ms since 1970)."""

    epoch: int
    timestamp_ms: int


class GroupChange(NamedTuple):
    """The group has a new epoch, or is deleted."""

    group_id: str
    value: GroupEpoch | None


class PartitionMetadataChange(NamedTuple):
    """The partition metadata of a group, which brokers before 4.1 stored, is written or deleted."""

    group_id: str
    is_there: bool


class MemberChange(NamedTuple):
    """A member's subscription has changed, or the member is deleted."""

    group_id: str
    member_id: str
    member: Member | None


class TargetEpochChange(NamedTuple):
    """The target was computed, or is deleted."""

    group_id: str
    value: TargetEpoch | None


class TargetChange(NamedTuple):
    """A member's target has changed."""

    group_id: str
    member_id: str
    target: TargetAssignment | None


class CurrentChange(NamedTuple):
    """A member has a new epoch, state or assignment."""

    group_id: str
    member_id: str
    member: Member | None


class RegexChange(NamedTuple):
    """A regular expression matches other topics, or is no longer used."""

    group_id: str
    regex: str
    resolved: ResolvedRegex | None


Change: TypeAlias = (
    GroupChange
    | PartitionMetadataChange
    | MemberChange
    | TargetEpochChange
    | TargetChange
    | CurrentChange
    | RegexChange
)


def encode(change: Change, now_ms: int) -> Record:
    """Return the record of a change."""
    value = _value_of(change)
    encoded = None if value is None else stored.encode_value(value)
    return Record(key=stored.encode_key(_key_of(change)), value=encoded, timestamp=now_ms)


def _key_of(change: Change) -> stored.Key:
    match change:
        case GroupChange(group_id):
            return stored.ConsumerGroupMetadataKey(group_id=group_id)
        case PartitionMetadataChange(group_id):
            return stored.ConsumerGroupPartitionMetadataKey(group_id=group_id)
        case MemberChange(group_id, member_id):
            return stored.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        case TargetEpochChange(group_id):
            return stored.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
        case TargetChange(group_id, member_id):
            return stored.ConsumerGroupTargetAssignmentMemberKey(
                group_id=group_id, member_id=member_id
            )
        case CurrentChange(group_id, member_id):
            return stored.ConsumerGroupCurrentMemberAssignmentKey(
                group_id=group_id, member_id=member_id
            )
        case RegexChange(group_id, regex):
            return stored.ConsumerGroupRegularExpressionKey(
                group_id=group_id, regular_expression=regex
            )


def _value_of(change: Change) -> Message | None:
    match change:
        case GroupChange(_, GroupEpoch(epoch, metadata_hash)):
            return stored.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        case PartitionMetadataChange(_, True):
            return stored.ConsumerGroupPartitionMetadataValue()
        case MemberChange(_, _, Member() as member):
            return _member_value(member)
        case TargetEpochChange(_, TargetEpoch(epoch, timestamp_ms)):
            return stored.ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp_ms
            )
        case TargetChange(_, _, target) if target is not None:
            return stored.ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=[
                    stored.TargetTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in target.items()
                ]
            )
        case CurrentChange(_, _, Member() as member):
            return stored.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=member.epoch,
                previous_member_epoch=member.previous_epoch,
                state=member.state,
                assigned_partitions=_topics(member.assigned),
                partitions_pending_revocation=_topics(member.pending_revocation),
            )
        case RegexChange(_, _, ResolvedRegex(topics, version, timestamp_ms)):
            return stored.ConsumerGroupRegularExpressionValue(
                topics=sorted(topics), version=version, timestamp=timestamp_ms
            )
    return None


def _member_value(member: Member) -> stored.ConsumerGroupMemberMetadataValue:
    classic = None
    if member.classic is not None:
        classic = stored.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                stored.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return stored.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )


def _topics(assignment: CurrentAssignment) -> list[stored.CurrentTopicPartitions]:
    return [
        stored.CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[partition] for partition in sorted(epochs)],
        )
        for topic_id, epochs in assignment.items()
    ]


def decode(record: Record) -> Change | None:
    """Return the change in a record; None for record types that these groups do not have."""
    if record.key is None:
        raise ProtocolError("a record of __consumer_offsets has no key")
    key = stored.decode_key(record.key)
    match key:
        case stored.ConsumerGroupMetadataKey():
            return GroupChange(key.group_id, _group_epoch(record.value))
        case stored.ConsumerGroupPartitionMetadataKey():
            return PartitionMetadataChange(key.group_id, record.value is not None)
        case stored.ConsumerGroupMemberMetadataKey():
            member = _member(key.member_id, record.value)
            return MemberChange(key.group_id, key.member_id, member)
        case stored.ConsumerGroupTargetAssignmentMetadataKey():
            return TargetEpochChange(key.group_id, _target_epoch(record.value))
        case stored.ConsumerGroupTargetAssignmentMemberKey():
            return TargetChange(key.group_id, key.member_id, _target(record.value))
        case stored.ConsumerGroupCurrentMemberAssignmentKey():
            member = _current(key.member_id, record.value)
            return CurrentChange(key.group_id, key.member_id, member)
        case stored.ConsumerGroupRegularExpressionKey():
            return RegexChange(key.group_id, key.regular_expression, _resolved(record.value))
    return None


def _group_epoch(data: bytes | None) -> GroupEpoch | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupMetadataValue, data)
    return GroupEpoch(value.epoch, value.metadata_hash)


def _target_epoch(data: bytes | None) -> TargetEpoch | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupTargetAssignmentMetadataValue, data)
    return TargetEpoch(value.assignment_epoch, value.assignment_timestamp)


def _target(data: bytes | None) -> TargetAssignment | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupTargetAssignmentMemberValue, data)
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _member(member_id: str, data: bytes | None) -> Member | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupMemberMetadataValue, data)
    classic = None
    if value.classic_member_metadata is not None:
        metadata = value.classic_member_metadata
        classic = ClassicMembership(
            metadata.session_timeout_ms,
            tuple(
                (protocol.name, bytes(protocol.metadata))
                for protocol in metadata.supported_protocols
            ),
        )
    return Member(
        member_id=member_id,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=frozenset(value.subscribed_topic_names),
        subscribed_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic,
    )


def _current(member_id: str, data: bytes | None) -> Member | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupCurrentMemberAssignmentValue, data)
    is_known = value.state in MemberState.__members__.values()
    return Member(
        member_id=member_id,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if is_known else MemberState.UNKNOWN,
        assigned=_assignment(value.assigned_partitions, value.member_epoch),
        pending_revocation=_assignment(value.partitions_pending_revocation, value.member_epoch),
    )


def _assignment(
    topics: list[stored.CurrentTopicPartitions], member_epoch: int
) -> Mapping[bytes, Mapping[int, int]]:
    assigned = {}
    for topic in topics:
        # Brokers before 4.3 do not store it; then no older epoch may commit.
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [member_epoch] * len(topic.partitions)
        assigned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return assigned


def _resolved(data: bytes | None) -> ResolvedRegex | None:
    if data is None:
        return None
    value = stored.decode_value(stored.ConsumerGroupRegularExpressionValue, data)
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
